/* SPDX-License-Identifier: Apache-2.0 */
/* A request before its body: target, method, Host, Origin, media type; one per line. */
#include <string.h>

#include "api/internal.h"
#include "base/base64.h"
#include "base/id.h"
#include "core/config/config.h"
#include "daemon/dialects.h"
#include "fuzz.h"
#include "http/internal.h"

#define LINES    4
#define LINE_LEN 512

static void check_path(const char *target, const char *method)
{
	char *path = http_decode_path(target);
	struct route_match match = {0};
	char allow[ROUTE_ALLOW_LEN];
	struct route_args args;
	struct error err = {0};

	if (!path)
		return;
	require(path[0] == '/');
	require(strlen(path) <= strlen(target));
	if (route_find(dialects, method, path, &match, allow, &err) == 0)
		require(match.route && route_parse(match.route->path, path, &args) &&
		        (!args.id[0] || id_is_valid(args.id, sizeof(args.id) - 1)));
	else
		require(err.code == ERR_NOT_FOUND || (err.code == ERR_BAD_METHOD && allow[0]));
	free(path);
}

/* Only a few Hosts are accepted, whatever surrounds them. */
static void check_host(const char *host)
{
	const struct config config = {0};
	struct error err = {0};

	if (router_check_source(&config, false, host, NULL, NULL, &err) < 0) {
		require(err.code == ERR_FORBIDDEN);
		return;
	}
	require(strncasecmp(host, "localhost", 9) == 0 || strncmp(host, "127.", 4) == 0 ||
	        host[0] == '[');
	require(!strchr(host, '@') && !strchr(host, '/') && !strchr(host, ' '));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char lines[LINES][LINE_LEN] = {0};
	size_t len = 0, at = 0;
	char *bytes;

	for (size_t i = 0; i < size && at < LINES; i++) {
		if (data[i] == '\n') {
			at++;
			len = 0;
		} else if (data[i] != '\0' && len + 1 < LINE_LEN) {
			lines[at][len++] = (char)data[i];
		}
	}
	check_path(lines[0], lines[1]);
	check_host(lines[2]);
	if (router_is_json(lines[3]))
		require(strcasestr(lines[3], "application/json"));
	bytes = base64_decode(lines[3], strlen(lines[3]), &len);
	require(!bytes || len <= strlen(lines[3]) / 4 * 3);
	free(bytes);
	return 0;
}
