/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/host_probe.h"

#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/size.h"
#include "base/systemd.h"
#include "cli/client/program.h"

#define OUTPUT_MAX (256 * KIB)
#define ENV_WORDS  2 /* env NAME=VALUE */

/* Return: 0 with its checks, 1: it printed none, or -1. */
static int run_probe(const char *const *argv, const char *engine, struct checks *checks,
                     int *ret_status, struct error *err)
{
	cleanup_buf struct buf out = BUF_INIT(OUTPUT_MAX);
	cleanup_free char *text = NULL;

	if (program_read(argv, &out, ret_status, err) < 0)
		return -1;
	if (out.len == 0)
		return 1;
	text = buf_take(&out, NULL);
	if (checks_parse(checks, text) < 0)
		return error_set(err, ERR_PROTOCOL, 0, "cannot parse the output of %s --probe",
		                 engine);
	return checks->count == 0;
}

static void note_scope(struct checks *checks)
{
	struct error ignored = {0};
	cleanup_free char *daemon = program_find("milliboxd", &ignored);
	cleanup_free char *value =
		xasprintf("as 'millibox run' makes one; to start a daemon in one: "
	                  "systemd-run --user --scope -p Delegate=yes %s",
	                  daemon ? daemon : "milliboxd");

	checks_add(checks, "scope", CHECK_INFO, value);
}

int host_probe(struct checks *checks, struct error *err)
{
	bool has_scope = geteuid() != 0 && systemd_delegation() == SYSTEMD_DELEGATES;
	cleanup_free char *engine = program_find_engine(err);
	cleanup_free char *runtime_dir = systemd_runtime_dir();
	const char *const words[] = {"/usr/bin/env", runtime_dir, SYSTEMD_SCOPE_WORDS,
	                             engine,         "--probe",   NULL};
	int status = 0, r = 1;

	if (!engine)
		return -1;
	if (has_scope)
		r = run_probe(words, engine, checks, &status, err);
	if (r == 0)
		note_scope(checks);
	if (r > 0)
		r = run_probe(words + ENV_WORDS + SYSTEMD_SCOPE_COUNT, engine, checks, &status,
		              err);
	if (r > 0)
		return error_set(err, ERR_PROTOCOL, 0, "%s --probe printed nothing (status %d)",
		                 engine, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return r;
}
