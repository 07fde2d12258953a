/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/internal.h"
#include "api/json/fields.h"
#include "api/openapi.h"
#include "api/v1/v1.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "core/config/config.h"
#include "daemon/dialects.h"
#include <ctype.h>
#include <fcntl.h>
#include <jansson.h>
#include <string.h>

static void a_route_is_found_by_method_and_path(void **state)
{
	struct route_match match = {0};
	char allow[ROUTE_ALLOW_LEN];
	struct error err = {0};

	(void)state;
	assert_int_equal(route_find(dialects, "POST", "/api/v1/execute", &match, allow, &err), 0);
	assert_ptr_equal(match.route->handle, v1_execute);
	assert_int_equal(route_find(dialects, "GET", "/healthz", &match, allow, &err), 0);
	assert_ptr_equal(match.route->handle, v1_healthz);
	assert_int_equal(route_find(dialects, "HEAD", "/healthz", &match, allow, &err), 0);
	assert_ptr_equal(match.route->handle, v1_healthz);
}

static void another_path_is_not_found(void **state)
{
	static const char *const paths[] = {"",
	                                    "/api",
	                                    "/api/v1/execute/",
	                                    "/api/v1/execute/x",
	                                    "//api/v1/execute",
	                                    "/API/v1/execute",
	                                    "/api/v1/../v1/execute",
	                                    "/api/v1/execut"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		struct route_match match = {0};
		char allow[ROUTE_ALLOW_LEN];
		struct error err = {0};

		assert_int_equal(route_find(dialects, "POST", paths[i], &match, allow, &err), -1);
		assert_int_equal(err.code, ERR_NOT_FOUND);
		assert_string_equal(allow, "");
		assert_null(match.route);
	}
}

static void another_method_gets_the_allowed_ones(void **state)
{
	static const struct {
		const char *method, *path, *allow;
	} rows[] = {
		{"GET", "/api/v1/execute", "POST"},     {"HEAD", "/api/v1/execute", "POST"},
		{"OPTIONS", "/api/v1/execute", "POST"}, {"post", "/api/v1/execute", "POST"},
		{"", "/api/v1/execute", "POST"},        {"POST", "/healthz", "GET, HEAD"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct route_match match = {0};
		char allow[ROUTE_ALLOW_LEN];
		struct error err = {0};

		assert_int_equal(
			route_find(dialects, rows[i].method, rows[i].path, &match, allow, &err),
			-1);
		assert_int_equal(err.code, ERR_BAD_METHOD);
		assert_string_equal(allow, rows[i].allow);
	}
}

static void a_part_of_the_path_may_be_an_id(void **state)
{
	static const struct {
		const char *method, *path;
		route_fn *handle;
	} rows[] = {
		{"GET", "/api/v1/sessions", v1_session_list},
		{"GET", "/api/v1/sessions/sess_1", v1_session_show},
		{"HEAD", "/api/v1/sessions/sess_1", v1_session_show},
		{"DELETE", "/api/v1/sessions/sess_1", v1_session_delete},
		{"POST", "/api/v1/sessions/execute/execute", v1_session_execute},
		{"GET", "/api/v1/executions/sessions", v1_execution_show},
		{"GET", "/api/v1/executions/sessions/status", v1_execution_status},
		{"POST", "/api/v1/executions/sessions/a/execute-sync", v1_session_execute_sync},
		{"GET", "/api/v1/executions/sessions/executions/executions", v1_session_executions},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct route_match match = {0};
		char allow[ROUTE_ALLOW_LEN];
		struct error err = {0};

		if (route_find(dialects, rows[i].method, rows[i].path, &match, allow, &err) < 0)
			fail_msg("%s is not found", rows[i].path);
		assert_ptr_equal(match.route->handle, rows[i].handle);
	}
}

static void an_id_is_taken_from_its_place(void **state)
{
	static const char longest[] = "a23456789012345678901234567890123456789012345678901234567890"
				      "1234";
	static const struct {
		const char *pattern, *path, *id; /* NULL: no match */
	} rows[] = {
		{"/a/{id}/b", "/a/x/b", "x"},
		{"/a/{id}/b", "/a/A-z_09/b", "A-z_09"},
		{"/a/{id}", "/a/b", "b"},
		{"/a/{id}", "/a/{id}", ""},
		{"/a/{id}", "/a/..", ""},
		{"/a/{id}", "/a/x y", ""},
		{"/a/{id}", "/a/\xc3\xa9", ""},
		{"/a/{id}/b", "/a//b", NULL},
		{"/a/{id}", "/a/", NULL},
		{"/a/{id}", "/a", NULL},
		{"/a/{id}", "/a/x/", NULL},
		{"/a/{id}/b", "/a/x", NULL},
		{"/a/{id}/b", "/a/x/bb", NULL},
		{"/a/{id}/b", "/a/x/y/b", NULL},
		{"/a/{id}/b", "/b/x/b", NULL},
		{"/a/{id}/b", "", NULL},
		{"/a", "/a", ""},
		{"/a", "/b", NULL},
	};
	char path[ROUTE_ID_LEN + 8];
	struct route_args args;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (route_parse(rows[i].pattern, rows[i].path, &args) != (rows[i].id != NULL))
			fail_msg("'%s' and '%s'", rows[i].pattern, rows[i].path);
		if (rows[i].id)
			assert_string_equal(args.id, rows[i].id);
	}
	assert_int_equal(str_format(path, sizeof(path), "/a/%s", longest), 0);
	assert_true(route_parse("/a/{id}", path, &args));
	assert_string_equal(args.id, longest);
	assert_int_equal(str_format(path, sizeof(path), "/a/%sx", longest), 0);
	assert_true(route_parse("/a/{id}", path, &args));
	assert_string_equal(args.id, "");
}

static void what_follows_may_be_anything(void **state)
{
	static const struct {
		const char *path, *id, *rest; /* NULL: no match */
	} rows[] = {
		{"/a/x/f/b", "x", "b"},         {"/a/x/f/b/c/", "x", "b/c/"}, {"/a/x/f/", "x", ""},
		{"/a/x/f//../b", "x", "/../b"}, {"/a/../f/b", "", "b"},       {"/a/x/f", "", NULL},
		{"/a//f/b", "", NULL},          {"/a/x/g/b", "", NULL},
	};
	struct route_args args;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool match = route_parse("/a/{id}/f/" ROUTE_REST, rows[i].path, &args);

		assert_int_equal(match, rows[i].rest != NULL);
		if (match) {
			assert_string_equal(args.id, rows[i].id);
			assert_string_equal(args.rest, rows[i].rest);
		}
	}
}

static void every_row_of_the_table_is_complete(void **state)
{
	struct route_match match;

	(void)state;
	for (size_t i = 0; route_at(dialects, i, &match); i++) {
		const struct route *route = match.route;
		assert_non_null(route->handle);
		assert_non_null(route->summary);
		assert_int_equal(route->path[0], '/');
	}
}

/* How the description writes what a pattern ends with. */
static char *described_path(const struct route *route)
{
	size_t len = strlen(route->path), rest = strlen(ROUTE_REST);

	if (len > rest && str_equal(route->path + len - rest, ROUTE_REST))
		return xasprintf("%.*s{path}", (int)(len - rest), route->path);
	return xstrdup(route->path);
}

static const json_t *find_operation(const json_t *paths, const struct route *route)
{
	cleanup_free char *path = described_path(route);
	char method[16] = "";

	for (size_t i = 0; route->method[i] && i < sizeof(method) - 1; i++)
		method[i] = (char)tolower((unsigned char)route->method[i]);
	return json_object_get(json_object_get(paths, path), method);
}

static bool takes_json(const json_t *body)
{
	return json_object_get(json_object_get(body, "content"), "application/json");
}

static void check_body_described(const struct route *route, const json_t *body)
{
	bool required = json_is_true(json_object_get(body, "required"));

	if (route->body == ROUTE_BODY_NONE && body)
		fail_msg("%s %s has a body only in the description", route->method, route->path);
	if (route->body == ROUTE_BODY_OPTIONAL && required)
		fail_msg("%s %s needs a body only in the description", route->method, route->path);
	if (route->body == ROUTE_BODY_JSON && !(required && takes_json(body)))
		fail_msg("%s %s: its body is not described", route->method, route->path);
}

/* The description has every row, with its method, its summary and its kind of body, and no others.
 */
static void the_description_has_every_row(void **state)
{
	json_t *document = json_loadb((const char *)openapi_json, openapi_json_len, 0, NULL);
	const json_t *paths = json_object_get(document, "paths");
	struct route_match match;
	size_t described = 0, count;
	const char *path;
	json_t *item;

	(void)state;
	assert_non_null(document);
	for (count = 0; route_at(dialects, count, &match); count++) {
		const struct route *route = match.route;
		const json_t *operation = find_operation(paths, route);
		const char *summary = json_string_value(json_object_get(operation, "summary"));

		if (!operation)
			fail_msg("%s %s is not described", route->method, route->path);
		if (!summary || !str_equal(summary, route->summary))
			fail_msg("%s %s has another summary", route->method, route->path);
		check_body_described(route, json_object_get(operation, "requestBody"));
	}
	json_object_foreach ((json_t *)(uintptr_t)paths, path, item)
		described += json_object_size(item) - (json_object_get(item, "parameters") != NULL);
	assert_int_equal(described, count);
	json_decref(document);
}

static char *hosts[] = {(char[]){"box.example"}, NULL};
static char *origins[] = {(char[]){"https://app.example"}, NULL};
static const struct config config = {.allowed_hosts = hosts, .allowed_origins = origins};

static int check_site(const char *origin, const char *site)
{
	struct error err = {0};

	return router_check_source(&config, false, "localhost", origin, site, &err);
}

static int check(bool is_unix, const char *host, const char *origin)
{
	struct error err = {0};
	int r = router_check_source(&config, is_unix, host, origin, NULL, &err);

	assert_int_equal(err.code, r < 0 ? ERR_FORBIDDEN : ERR_NONE);
	return r;
}

static void names_of_this_host_are_served(void **state)
{
	static const char *const good[] = {
		"localhost",      "localhost:8000",   "LOCALHOST", "127.0.0.1",
		"127.0.0.1:8000", "127.1.2.3:1",      "[::1]",     "[::1]:8000",
		"box.example",    "Box.Example:8000", "localhost:"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (check(false, good[i], NULL) < 0)
			fail_msg("'%s' is refused", good[i]);
}

static void requests_of_the_same_origin_are_served(void **state)
{
	(void)state;
	assert_int_equal(check(false, "127.0.0.1:8000", "http://127.0.0.1:8000"), 0);
	assert_int_equal(check(false, "box.example", "https://Box.Example"), 0);
	/* Another port is another origin. */
	assert_int_equal(check(false, "127.0.0.1:8000", "http://127.0.0.1:8001"), -1);
	assert_int_equal(check(false, "127.0.0.1:8000", "http://127.0.0.1"), -1);
	assert_int_equal(check(false, "127.0.0.1:8000", "ftp://127.0.0.1:8000"), -1);
	assert_int_equal(check(false, "evil.example", "http://evil.example"), -1);
	assert_int_equal(check(true, "localhost", "http://localhost"), -1);
}

static void pages_of_other_sites_are_refused_even_without_an_origin(void **state)
{
	(void)state;
	assert_int_equal(check_site(NULL, "none"), 0);
	assert_int_equal(check_site(NULL, "same-origin"), 0);
	assert_int_equal(check_site(NULL, "cross-site"), -1);
	assert_int_equal(check_site(NULL, "same-site"), -1);
	assert_int_equal(check_site(NULL, "anything"), -1);
	/* The operator allows this page. */
	assert_int_equal(check_site("https://app.example", "cross-site"), 0);
}

static void other_names_are_refused(void **state)
{
	static const char *const bad[] = {NULL,
	                                  "",
	                                  ":8000",
	                                  "evil.example",
	                                  "evil.example:8000",
	                                  "localhost.evil.example",
	                                  "127.0.0.1.evil.example",
	                                  "box.example.evil",
	                                  "xlocalhost",
	                                  "localhost@evil",
	                                  "localhost:80@evil",
	                                  "localhost:80:80",
	                                  "localhost:8o",
	                                  "128.0.0.1",
	                                  "0.0.0.0",
	                                  "2130706433",
	                                  "127.1",
	                                  "[::1",
	                                  "[::2]",
	                                  "[::1]x",
	                                  "[]",
	                                  "::1",
	                                  "localhost localhost",
	                                  "localhost."};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (check(false, bad[i], NULL) == 0)
			fail_msg("'%s' is served", bad[i] ? bad[i] : "(none)");
}

static void requests_of_other_origins_are_refused(void **state)
{
	(void)state;
	assert_int_equal(check(false, "localhost", "https://app.example"), 0);
	assert_int_equal(check(false, "localhost", "https://evil.example"), -1);
	assert_int_equal(check(false, "localhost", "null"), -1);
	assert_int_equal(check(false, "localhost", ""), -1);
	assert_int_equal(check(false, "localhost", "http://localhost:8000"), -1);
	assert_int_equal(check(false, "localhost", "https://app.example.evil"), -1);
	assert_int_equal(check(true, "localhost", "https://evil.example"), -1);
}

static void any_name_does_for_a_unix_socket(void **state)
{
	(void)state;
	assert_int_equal(check(true, NULL, NULL), 0);
	assert_int_equal(check(true, "whatever", NULL), 0);
}

static void only_json_in_utf8_is_json(void **state)
{
	static const char *const good[] = {"application/json",
	                                   "Application/JSON",
	                                   "application/json; charset=utf-8",
	                                   "application/json;charset=UTF-8",
	                                   "application/json ; charset=\"utf-8\"",
	                                   "application/json;"};
	static const char *const bad[] = {NULL,
	                                  "",
	                                  "text/plain",
	                                  "application/jsonx",
	                                  "application/json-patch+json",
	                                  "application/x-www-form-urlencoded",
	                                  "application/json; charset=latin1",
	                                  "application/json, text/plain",
	                                  "xapplication/json",
	                                  "text/plain; application/json"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (!router_is_json(good[i]))
			fail_msg("'%s' is refused", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (router_is_json(bad[i]))
			fail_msg("'%s' is taken", bad[i] ? bad[i] : "(none)");
}

static void every_route_names_its_scope(void **state)
{
	struct route_match match;

	(void)state;
	for (size_t i = 0; route_at(dialects, i, &match); i++) {
		const struct route *route = match.route;
		bool health =
			str_equal(route->path, "/healthz") || str_equal(route->path, "/readyz");

		if (route->scope == SCOPE_UNSET)
			fail_msg("%s %s has none", route->method, route->path);
		/* No other route is served without a key. */
		assert_int_equal(route->scope == SCOPE_PUBLIC, health);
		/* Who may only read changes nothing. */
		if (route->scope == SCOPE_READ)
			assert_string_equal(route->method, "GET");
	}
}

static void check_parameter(const struct field *f)
{
	static const enum field_type types[] = {FIELD_STRING, FIELD_WORD,    FIELD_ENUM,
	                                        FIELD_BOOL,   FIELD_INTEGER, FIELD_SECONDS,
	                                        FIELD_CUSTOM};
	bool known = false, text = f->type == FIELD_STRING || f->type == FIELD_WORD;

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		known |= f->type == types[i];
	if (!known)
		fail_msg("%s has a type that no query has", f->name);
	/* Strings are borrowed from the request: nothing would free a default. */
	assert_false(text && f->fallback);
	assert_true(f->type != FIELD_CUSTOM || (f->check && f->schema));
	assert_true((f->type != FIELD_WORD && f->type != FIELD_ENUM) || f->words);
}

static void query_parameters_have_types_that_a_query_can_have(void **state)
{
	struct route_match match, other;
	size_t count = 0;

	(void)state;
	for (size_t i = 0; route_at(dialects, i, &match); i++) {
		/* A handler decodes one table, whichever row led to it. */
		for (size_t j = 0; j < i && route_at(dialects, j, &other); j++)
			if (other.route->handle == match.route->handle)
				assert_ptr_equal(other.route->query, match.route->query);
		if (!match.route->query)
			continue;
		for (const struct field *f = match.route->query->rows; f->name; f++, count++)
			check_parameter(f);
	}
	assert_true(count > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_route_is_found_by_method_and_path),
		cmocka_unit_test(another_path_is_not_found),
		cmocka_unit_test(another_method_gets_the_allowed_ones),
		cmocka_unit_test(a_part_of_the_path_may_be_an_id),
		cmocka_unit_test(an_id_is_taken_from_its_place),
		cmocka_unit_test(what_follows_may_be_anything),
		cmocka_unit_test(every_row_of_the_table_is_complete),
		cmocka_unit_test(the_description_has_every_row),
		cmocka_unit_test(names_of_this_host_are_served),
		cmocka_unit_test(requests_of_the_same_origin_are_served),
		cmocka_unit_test(pages_of_other_sites_are_refused_even_without_an_origin),
		cmocka_unit_test(other_names_are_refused),
		cmocka_unit_test(requests_of_other_origins_are_refused),
		cmocka_unit_test(any_name_does_for_a_unix_socket),
		cmocka_unit_test(only_json_in_utf8_is_json),
		cmocka_unit_test(every_route_names_its_scope),
		cmocka_unit_test(query_parameters_have_types_that_a_query_can_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
