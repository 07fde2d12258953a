/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/gateway_setup.h"

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/secret/secret.h"
#include "core/tenant/principal.h"
#include "gateway/spec.h"
#include <string.h>

#define PLACE     "${secret:"
#define VALUE_MAX 16384

/* One place of a text. Everything is owned. */
struct place {
	const char *start, *end; /* of the text, borrowed */
	char *tenant, *name;
};

static void place_done(struct place *p)
{
	free(p->tenant);
	free(p->name);
}

static bool find_place(const char *text, struct place *ret)
{
	const char *start = strstr(text, PLACE);
	const char *end = start ? strchr(start, '}') : NULL;
	const char *name = start ? start + sizeof(PLACE) - 1 : NULL;
	const char *slash = end ? memchr(name, '/', (size_t)(end - name)) : NULL;

	if (!end)
		return false;
	*ret = (struct place){
		.start = start,
		.end = end + 1,
		.tenant = slash ? xstrndup(name, (size_t)(slash - name)) : xstrdup(TENANT_DEFAULT),
		.name = xstrndup(slash ? slash + 1 : name,
	                         (size_t)(end - (slash ? slash + 1 : name))),
	};
	return true;
}

/* Return: whether all secrets of @text are there; @problem names the first that is not. */
static bool fill(const char *text, const struct secrets *secrets, struct buf *to, char **problem)
{
	struct place p;
	bool is_there = true;

	while (is_there && find_place(text, &p)) {
		struct error err = {0};

		is_there = buf_add(to, text, (size_t)(p.start - text)) >= 0 && secrets &&
		           secrets_reveal(secrets, p.tenant, p.name, to, &err) >= 0;
		if (!is_there) {
			free(*problem);
			*problem = xasprintf(
				"needs secret '%.64s' of tenant '%.64s', which is not set "
				"or cannot be read",
				p.name, p.tenant);
		}
		text = p.end;
		place_done(&p);
	}
	return is_there && buf_add_str(to, text) >= 0;
}

static char **fill_list(char *const *list, const struct secrets *secrets, char **problem)
{
	size_t count = str_list_count(list), n = 0;
	char **filled = xcalloc(count + 1, sizeof(*filled));

	for (size_t i = 0; i < count; i++) {
		cleanup_secret struct buf text = BUF_INIT(VALUE_MAX);

		/* Growing would leave copies behind. */
		if (buf_reserve(&text, VALUE_MAX - 1) >= 0 &&
		    fill(list[i], secrets, &text, problem))
			filled[n++] = xstrdup(text.data);
	}
	return filled;
}

static int send_server(int sock, const struct server_spec *spec, const struct secrets *secrets)
{
	struct server_spec filled = *spec;
	cleanup_secret struct buf message = BUF_INIT(0);
	char *problem = xstrdup("");
	int r;

	filled.env = fill_list(spec->env, secrets, &problem);
	filled.headers = fill_list(spec->headers, secrets, &problem);
	filled.problem = problem;
	r = spec_write(&filled, &message);
	if (r >= 0)
		r = fd_send(sock, message.data, message.len, NULL, 0);
	spec_wipe_list(filled.env);
	spec_wipe_list(filled.headers);
	free(problem);
	return r;
}

/* RESET, each server, START. */
int gateway_setup_send(int sock, const struct config *config, const struct secrets *secrets,
                       size_t *step)
{
	static const uint32_t reset = GATEWAY_RESET, start = GATEWAY_START;
	struct server_spec *const *servers = config->servers;
	size_t count = 0;
	int r = 0;

	while (servers[count])
		count++;
	for (; *step < count + 2; ++*step) {
		if (*step == 0)
			r = fd_send(sock, &reset, sizeof(reset), NULL, 0);
		else if (*step <= count)
			r = send_server(sock, servers[*step - 1], secrets);
		else
			r = fd_send(sock, &start, sizeof(start), NULL, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool list_uses(char *const *list, const char *tenant, const char *name)
{
	for (; *list; list++) {
		const char *text = *list;
		struct place p;

		while (find_place(text, &p)) {
			bool is_same = str_equal(p.tenant, tenant) && str_equal(p.name, name);

			text = p.end;
			place_done(&p);
			if (is_same)
				return true;
		}
	}
	return false;
}

bool gateway_setup_uses(const struct config *config, const char *tenant, const char *name)
{
	for (struct server_spec *const *s = config->servers; s && *s; s++)
		if (list_uses((*s)->env, tenant, name) || list_uses((*s)->headers, tenant, name))
			return true;
	return false;
}
