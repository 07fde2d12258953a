/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/start_daemon.h"

#include "base/str.h"
#include "cli/client/daemon.h"
#include "cli/doctor.h"
#include "cli/host_probe.h"
#include "cli/message.h"
#include "http/status.h"

/* A word of the setting isolation. */
#define STRICT      "strict"
#define BEST_EFFORT "best-effort"

int start_daemon_check(const struct daemon_options *at, struct error *err)
{
	if (!at->isolation || str_equal(at->isolation, STRICT) ||
	    str_equal(at->isolation, BEST_EFFORT))
		return 0;
	return error_set(err, ERR_INVALID, 0,
	                 "--isolation: '%.40s' is neither " STRICT " nor " BEST_EFFORT,
	                 at->isolation);
}

/* One line, the last that the user sees. */
static void name_remedy(enum own_daemon_lack lack, struct error *err)
{
	cleanup_checks struct checks checks = {0};
	struct error ignored = {0};
	struct advice advice = {0};

	error_clear(err);
	if (lack == OWN_DAEMON_LACKS_STRICT)
		(void)error_set(err, ERR_UNAVAILABLE, 0, DAEMON_NOT_STRICT_REMEDY);
	else if (host_probe(&checks, &ignored) == 0 && checks_first_remedy(&checks, &advice))
		(void)error_set(err, ERR_UNAVAILABLE, 0, "milliboxd did not start; what to do: %s",
		                advice.remedy);
	else
		(void)error_set(err, ERR_UNAVAILABLE, 0,
		                "milliboxd did not start; run 'millibox doctor' to see what the "
		                "host lacks");
}

static struct own_daemon *start(const struct daemon_options *at, int interrupt_fd,
                                struct error *err)
{
	enum own_daemon_lack lack = OWN_DAEMON_LACKS_NOTHING;
	struct own_daemon *own = own_daemon_start(at->isolation, interrupt_fd, &lack, err);

	if (!own && lack != OWN_DAEMON_LACKS_NOTHING)
		name_remedy(lack, err);
	return own;
}

/* A strict daemon will do for best-effort, too. */
static int check_found(const struct daemon_options *at, struct millibox_client *client,
                       struct error *err)
{
	const struct daemon_call call = {.method = "GET", .path = "/api/v1/daemon"};
	json_auto_t *answer = NULL;
	const char *mode;
	int status = 0;

	if (!at->isolation || str_equal(at->isolation, BEST_EFFORT))
		return 0;
	if (daemon_ask(client, &call, &answer, &status, err) < 0)
		return -1;
	if (status != HTTP_OK)
		return error_set(err, ERR_UNAVAILABLE, 0,
		                 "--isolation: the daemon does not tell its own: %.120s",
		                 message_text(answer, "error_detail"));
	mode = message_text(json_object_get(answer, "isolation"), "mode");
	if (str_equal(mode, at->isolation))
		return 0;
	return error_set(err, ERR_UNAVAILABLE, 0,
	                 "--isolation: the daemon that listens has %.20s, not %s", mode,
	                 at->isolation);
}

int start_daemon_find(const struct daemon_options *at, struct millibox_client *client,
                      int interrupt_fd, struct own_daemon **ret_own, struct error *err)
{
	int found = start_daemon_check(at, err) < 0 ? -1 : millibox_find(client, NULL);

	*ret_own = NULL;
	if (found < 0)
		return error_is_set(err) ? -1 : daemon_fail(client, err);
	if (found)
		return check_found(at, client, err);
	*ret_own = start(at, interrupt_fd, err);
	if (!*ret_own)
		return -1;
	(void)millibox_set_socket(client, own_daemon_socket(*ret_own));
	return 0;
}
