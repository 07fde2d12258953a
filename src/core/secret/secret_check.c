/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include "core/language/env.h"
#include "core/secret/secret_internal.h"
#include "egress/target.h"

#define PLACEHOLDER_PREFIX "mbx-"
#define PLACEHOLDER_RANDOM 32
#define VALUE_WORD         "{value}"
#define HOST_TEXT_LEN      (TARGET_TEXT_LEN + 8) /* and the scheme */

static const char *const mode_names[] = {
	[SECRET_HEADER] = "header", [SECRET_PLACEHOLDER] = "placeholder"};
static_assert(ARRAY_SIZE(mode_names) == SECRET_MODE_COUNT, "every mode has a name");

const char *secret_mode_name(enum secret_mode mode)
{
	return mode_names[mode];
}

/* No byte that ends a header. */
static bool is_visible(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] >= 0x7f)
			return false;
	return true;
}

static int check_value(const struct secret_spec *spec, struct error *err)
{
	size_t len = spec->value_len;

	if (!spec->value)
		return error_field(err, "value", "is required");
	/* The value itself is in no message. */
	if (len < SECRET_VALUE_MIN || len > SECRET_VALUE_MAX)
		return error_field(err, "value", "must have %d to %d bytes", SECRET_VALUE_MIN,
		                   SECRET_VALUE_MAX);
	if (!is_visible(spec->value, len) || spec->value[0] == ' ' || spec->value[len - 1] == ' ')
		return error_field(err, "value",
		                   "must be visible ASCII characters in one line, without spaces "
		                   "at its ends");
	return 0;
}

static int check_header(const char *header, struct error *err)
{
	/* They decide where a request ends, and where it goes. */
	static const char *const ours[] = {
		"Connection", "Content-Length",    "Expect",  "Host",           "Keep-Alive", "TE",
		"Trailer",    "Transfer-Encoding", "Upgrade", "Accept-Encoding"};
	size_t len = strlen(header);

	if (len == 0 || len > SECRET_HEADER_MAX ||
	    strspn(header, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") !=
	            len)
		return error_field(err, "header", "must be 1 to %d letters, digits, - and _",
		                   SECRET_HEADER_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		if (strcasecmp(header, ours[i]) == 0 || strncasecmp(header, "Proxy-", 6) == 0)
			return error_field(err, "header", "'%s' belongs to the connection", header);
	return 0;
}

static int check_format(const char *format, struct error *err)
{
	const char *at = strstr(format, VALUE_WORD);

	if (!at || strstr(at + 1, VALUE_WORD) || strlen(format) > SECRET_FORMAT_MAX ||
	    !is_visible(format, strlen(format)) || format[0] == ' ')
		return error_field(err, "format",
		                   "must be at most %d visible ASCII characters with {value} once, "
		                   "like \"Bearer {value}\"",
		                   SECRET_FORMAT_MAX);
	return 0;
}

static int check_env(const char *env, struct error *err)
{
	char variable[SECRET_ENV_MAX + 2];

	if (str_format(variable, sizeof(variable), "%s=", env) < 0 ||
	    strchr(variable, '=')[1] != '\0' || env_check_variable(variable) < 0)
		return error_field(
			err, "env",
			"must be the name of a variable that callers may set, at most %d "
			"letters, digits and _",
			SECRET_ENV_MAX);
	return 0;
}

/* Return: owned, or NULL with *err. */
static char *read_host(const char *text, struct error *err)
{
	bool is_plain = str_has_prefix(text, "http://");
	const char *rest = is_plain                           ? text + strlen("http://")
	                   : str_has_prefix(text, "https://") ? text + strlen("https://")
	                                                      : text;
	struct target target;
	struct error why = {0};
	char host[TARGET_TEXT_LEN];

	if (target_parse(rest, strlen(rest), is_plain ? 80 : 443, &target, &why) < 0 ||
	    target.is_address) {
		(void)error_field(err, "hosts",
		                  "'%.100s' is not [http://]NAME[:PORT]; wildcards, addresses and "
		                  "paths are not possible",
		                  text);
		return NULL;
	}
	target_format(&target, 0, host);
	return xasprintf("%s://%s", is_plain ? "http" : "https", host);
}

static int read_hosts(char *const *texts, char ***ret_hosts, struct error *err)
{
	size_t count = texts ? str_list_count(texts) : 0;
	char **hosts;

	if (count == 0 || count > SECRET_HOSTS_MAX)
		return error_field(err, "hosts", "must name the hosts that get the secret, 1 to %d",
		                   SECRET_HOSTS_MAX);
	*ret_hosts = hosts = xcalloc(count + 1, sizeof(*hosts));
	for (size_t i = 0; i < count; i++) {
		hosts[i] = read_host(texts[i], err);
		if (!hosts[i])
			return -1;
	}
	return 0;
}

static char *choose(const char *given, const char *before, const char *fallback)
{
	return xstrdup(given ? given : before ? before : fallback);
}

static void fill(struct secret *made, const struct secret_spec *spec, const struct secret *before)
{
	char random[PLACEHOLDER_RANDOM + 1];
	const char *env = spec->env ? spec->env : before ? before->env : NULL;

	(void)!str_copy(made->name, sizeof(made->name), spec->name); /* checked */
	made->mode = spec->mode_given ? spec->mode : before ? before->mode : SECRET_HEADER;
	made->header = choose(spec->header, before ? before->header : NULL, "Authorization");
	made->format = choose(spec->format, before ? before->format : NULL, "Bearer {value}");
	made->env = env && *env ? xstrdup(env) : NULL;
	id_random(random, PLACEHOLDER_RANDOM);
	made->placeholder =
		before ? xstrdup(before->placeholder) : xasprintf(PLACEHOLDER_PREFIX "%s", random);
}

struct secret *secret_make(const struct secret_spec *spec, const struct secret *before,
                           struct error *err)
{
	struct secret *made = NEW(struct secret);

	list_init(&made->node);
	buf_init(&made->sealed, SECRET_VALUE_MAX + KEYRING_MORE);
	if (!id_is_valid(spec->name, SECRET_NAME_MAX)) {
		(void)error_field(err, "name", "must be 1 to %d of A-Z a-z 0-9 _ -",
		                  SECRET_NAME_MAX);
	} else {
		fill(made, spec, before);
		if (check_value(spec, err) == 0 && check_header(made->header, err) == 0 &&
		    check_format(made->format, err) == 0 &&
		    (!made->env || check_env(made->env, err) == 0) &&
		    read_hosts(spec->hosts ? spec->hosts
		               : before    ? before->hosts
		                           : NULL,
		               &made->hosts, err) == 0)
			return made;
	}
	secret_free(made);
	return NULL;
}

bool secret_has_tls(const struct secret *secret)
{
	for (char *const *host = secret->hosts; *host; host++)
		if (str_has_prefix(*host, "https://"))
			return true;
	return false;
}
