/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <string.h>

#include "base/str.h"
#include "engine/request.h"

static struct engine_request create_request(void)
{
	return (struct engine_request){
		.op = ENGINE_CREATE,
		.seq = 7,
		.box_id = "abc123",
		.limits = request_limits_default(),
	};
}

static int check(const struct engine_request *req, struct error *ret_err)
{
	struct engine_request out;

	*ret_err = (struct error){0};
	return request_check(req, sizeof(*req), &out, ret_err);
}

static void assert_refused(const struct engine_request *req, const char *field)
{
	struct error err;

	assert_int_equal(check(req, &err), -1);
	assert_string_equal(err.field, field);
}

static void a_valid_request_is_unchanged(void **state)
{
	struct engine_request req = create_request(), out;
	struct error err = {0};

	(void)state;
	req.flags = ENGINE_FLAG_EXEC_TMP | ENGINE_FLAG_REQUIRE_CGROUP;
	assert_int_equal(request_check(&req, sizeof(req), &out, &err), 0);
	assert_memory_equal(&req, &out, sizeof(req));
}

static void every_other_size_is_refused(void **state)
{
	struct engine_request req[2] = {create_request(), create_request()};
	struct engine_request out;

	(void)state;
	for (size_t len = 0; len <= sizeof(req); len++) {
		struct error err = {0};
		int r = request_check(req, len, &out, &err);

		assert_int_equal(r, len == sizeof(req[0]) ? 0 : -1);
		if (r < 0)
			assert_int_equal(err.code, ERR_PROTOCOL);
	}
}

static void only_requests_are_operations(void **state)
{
	(void)state;
	for (uint32_t op = 0; op < 300; op++) {
		struct engine_request req = {.op = op, .seq = 1, .box_id = "a"};
		struct error err;
		int r;

		if (op == ENGINE_CREATE)
			req.limits = request_limits_default();
		if (op == ENGINE_PROBE || op == ENGINE_ADOPT || op == ENGINE_END)
			req.box_id[0] = '\0';
		r = check(&req, &err);
		assert_int_equal(r, (op >= ENGINE_PROBE && op <= ENGINE_FREEZE) ||
		                                    op == ENGINE_ADOPT || op == ENGINE_END ||
		                                    op == ENGINE_CLAIM || op == ENGINE_REACH
		                            ? 0
		                            : -1);
	}
}

static void handover_takes_no_arguments(void **state)
{
	static const uint32_t ops[] = {ENGINE_ADOPT, ENGINE_END};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct engine_request req = {.op = ops[i], .seq = 1, .box_id = "a"};
		struct error err;

		assert_refused(&req, "box_id");
		req = (struct engine_request){.op = ops[i], .seq = 1, .flags = ENGINE_FLAG_KEEP};
		assert_refused(&req, "flags");
		req = (struct engine_request){.op = ops[i], .seq = 1, .frozen = 1};
		assert_refused(&req, "frozen");
		req = (struct engine_request){.op = ops[i], .seq = 1};
		assert_int_equal(check(&req, &err), 0);
	}
}

static void a_box_id_that_could_leave_its_directory_is_refused(void **state)
{
	static const char *const bad[] = {"",    ".",   "..",  "a/b",      "../a", "A",   "a b",
	                                  "a-b", "a_b", "a.b", "\xc3\xa9", "a\nb", "a\tb"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct engine_request req = create_request();

		memset(req.box_id, 0, sizeof(req.box_id));
		memcpy(req.box_id, bad[i], strlen(bad[i]));
		assert_refused(&req, "box_id");
	}
}

static void a_box_id_ends_inside_its_field_and_nothing_follows(void **state)
{
	struct engine_request req = create_request();
	struct error err;

	(void)state;
	memset(req.box_id, 'a', sizeof(req.box_id));
	assert_refused(&req, "box_id");
	req.box_id[ENGINE_ID_LEN - 1] = '\0';
	assert_int_equal(check(&req, &err), 0);
	req.box_id[3] = '\0';
	assert_refused(&req, "box_id");
}

static void the_id_of_a_refused_request_is_echoed_only_if_it_is_one(void **state)
{
	struct engine_request req = create_request(), out;
	struct error err = {0};

	(void)state;
	req.limits.pids = 0;
	assert_int_equal(request_check(&req, sizeof(req), &out, &err), -1);
	assert_string_equal(out.box_id, "abc123");
	assert_int_equal(out.seq, 7);
	assert_int_equal(out.limits.memory_bytes, 0);
	err = (struct error){0};
	memcpy(req.box_id, "../etc", 7);
	assert_int_equal(request_check(&req, sizeof(req), &out, &err), -1);
	assert_string_equal(out.box_id, "");
}

struct limit_case {
	const char *field;
	size_t offset;
	bool wide;
};

#define CASE(name, is_wide)                                                                        \
	{                                                                                          \
		"limits." #name, offsetof(struct engine_request, limits.name), is_wide             \
	}

static const struct limit_case limit_cases[] = {
	CASE(memory_bytes, true), CASE(workspace_bytes, true),   CASE(tmp_bytes, true),
	CASE(shm_bytes, true),    CASE(workspace_inodes, false), CASE(tmp_inodes, false),
	CASE(pids, false),        CASE(cpu_millicores, false),
};

static void every_limit_has_two_ends(void **state)
{
	static const uint64_t bad[] = {0, 1, UINT64_MAX, UINT64_MAX - 1};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limit_cases); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(bad); j++) {
			struct engine_request req = create_request();
			uint32_t narrow = (uint32_t)bad[j];
			char *at = (char *)&req + limit_cases[i].offset;

			if (limit_cases[i].wide)
				memcpy(at, &bad[j], sizeof(bad[j]));
			else
				memcpy(at, &narrow, sizeof(narrow));
			assert_refused(&req, limit_cases[i].field);
		}
	}
}

static void a_box_has_one_kind_of_network(void **state)
{
	static const uint32_t others[] = {ENGINE_FLAG_EGRESS, ENGINE_FLAG_BRIDGE};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct engine_request req = create_request();

		req.flags = ENGINE_FLAG_HOST_NETWORK | others[i];
		assert_refused(&req, "flags");
	}
}

static void ranges_are_for_an_interface(void **state)
{
	struct engine_request req = create_request();
	struct error err;

	(void)state;
	req.ranges = ENGINE_RANGES_ALL;
	assert_refused(&req, "ranges");
	req.flags = ENGINE_FLAG_BRIDGE;
	assert_int_equal(check(&req, &err), 0);
	req = (struct engine_request){.op = ENGINE_DESTROY, .seq = 1, .box_id = "a", .ranges = 1};
	assert_refused(&req, "ranges");
	req.op = ENGINE_REACH;
	assert_refused(&req, "ranges");
	req.flags = ENGINE_FLAG_EGRESS;
	assert_refused(&req, "flags");
	req.flags = ENGINE_FLAG_BRIDGE;
	assert_int_equal(check(&req, &err), 0);
	req.limits.pids = 1;
	assert_refused(&req, "limits");
}

static void unknown_flags_are_refused(void **state)
{
	(void)state;
	for (uint32_t bit = 0; bit < 32; bit++) {
		struct engine_request req = create_request();
		struct error err;

		req.flags = 1u << bit;
		if (req.flags == ENGINE_FLAG_IMAGE)
			memcpy(req.root, "python", strlen("python"));
		if (req.flags == ENGINE_FLAG_PACKAGES)
			memcpy(req.packages, "pkg-1", strlen("pkg-1"));
		assert_int_equal(check(&req, &err), req.flags & ENGINE_FLAGS_ALL ? 0 : -1);
	}
}

static void a_root_is_a_name_and_comes_with_its_flag(void **state)
{
	static const char *const bad[] = {"",  ".",   "..",  ".x",      "a/b",
	                                  "A", "a b", "a\n", "\xc3\xa4"};
	struct engine_request req = create_request();
	struct error err;

	(void)state;
	memcpy(req.root, "python", strlen("python"));
	assert_refused(&req, "root"); /* not allowed without the flag */
	req.flags = ENGINE_FLAG_IMAGE;
	assert_int_equal(check(&req, &err), 0);
	req.root[ENGINE_ROOT_LEN - 1] = 'x'; /* after the NUL */
	assert_refused(&req, "root");
	memset(req.root, 'a', sizeof(req.root)); /* no NUL */
	assert_refused(&req, "root");
	req.root[ENGINE_ROOT_LEN - 1] = '\0';
	assert_int_equal(check(&req, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(req.root, 0, sizeof(req.root));
		memcpy(req.root, bad[i], strlen(bad[i]));
		assert_refused(&req, "root");
	}
}

static void packages_are_a_name_and_come_with_their_flag(void **state)
{
	struct engine_request req = create_request();
	struct error err;

	(void)state;
	memcpy(req.packages, "pkg-1", strlen("pkg-1"));
	assert_refused(&req, "packages"); /* not allowed without the flag */
	req.flags = ENGINE_FLAG_PACKAGES;
	assert_int_equal(check(&req, &err), 0);
	memcpy(req.packages, "../ro", strlen("../ro"));
	assert_refused(&req, "packages");
	memset(req.packages, 0, sizeof(req.packages));
	assert_refused(&req, "packages");
}

static void fields_of_other_operations_must_be_zero(void **state)
{
	struct engine_request req = create_request();

	(void)state;
	req.frozen = 1;
	assert_refused(&req, "frozen");
	req = create_request();
	req.op = ENGINE_DESTROY;
	assert_refused(&req, "limits");
	req = (struct engine_request){.op = ENGINE_DESTROY, .seq = 1, .box_id = "a", .flags = 1};
	assert_refused(&req, "flags");
	req = (struct engine_request){.op = ENGINE_PROBE, .seq = 1, .box_id = "a"};
	assert_refused(&req, "box_id");
	req = (struct engine_request){.op = ENGINE_FREEZE, .seq = 1, .box_id = "a", .frozen = 2};
	assert_refused(&req, "frozen");
}

static void sequence_zero_stands_for_events(void **state)
{
	struct engine_request req = create_request();

	(void)state;
	req.seq = 0;
	assert_refused(&req, "seq");
}

static void the_default_limits_hold(void **state)
{
	struct engine_limits limits = request_limits_default();
	struct error err = {0};

	(void)state;
	assert_int_equal(request_limits_check(&limits, &err), 0);
	/* tmpfs files count as memory: together they must fit. */
	assert_true(limits.workspace_bytes + limits.tmp_bytes + limits.shm_bytes <
	            limits.memory_bytes);
}

static void nothing_goes_above_what_the_operator_allows(void **state)
{
	const struct engine_limits standard = request_limits_default();
	struct engine_limits maxima = request_limits_most(), asked;
	struct error err = {0};

	(void)state;
	assert_int_equal(request_limits_check(&maxima, &err), 0);
	assert_int_equal(request_limits_within(&maxima, &maxima, &err), 0);
	maxima = standard;
	assert_int_equal(request_limits_within(&standard, &maxima, &err), 0);
	asked = standard;
	asked.memory_bytes++;
	assert_int_equal(request_limits_within(&asked, &maxima, &err), -1);
	assert_string_equal(err.field, "limits.memory_bytes");
	asked = standard;
	asked.cpu_millicores++;
	err = (struct error){0};
	assert_int_equal(request_limits_within(&asked, &maxima, &err), -1);
	assert_string_equal(err.field, "limits.cpu_millicores");
	asked = standard;
	asked.tmp_bytes++;
	asked.shm_bytes = 0;
	err = (struct error){0};
	assert_int_equal(request_limits_within(&asked, &maxima, &err), -1);
	assert_string_equal(err.field, "limits.tmp_bytes");
}

static struct engine_zygote good_zygote(void)
{
	struct engine_zygote req;

	memset(&req, 0, sizeof(req));
	req.op = ENGINE_ZYGOTE;
	req.seq = 7;
	req.zygote = 1;
	memcpy(req.command, "python/run.zygote", strlen("python/run.zygote"));
	memcpy(req.modules, "numpy pandas.core", strlen("numpy pandas.core"));
	return req;
}

static void assert_zygote_refused(const struct engine_zygote *req, const char *field)
{
	struct engine_zygote out = {0};
	struct error err = {0};

	assert_int_equal(request_check_zygote(req, sizeof(*req), &out, &err), -1);
	assert_string_equal(err.field, field);
}

static void a_zygote_is_named_by_a_file_of_the_runners(void **state)
{
	static const char *const bad[] = {"",           "python", "/etc/passwd", "python/../x",
	                                  "../x/y",     "a/b/c",  "python/",     "/run.zygote",
	                                  "Python/run", ".x/run", "python/.x",   "python/a b"};
	struct engine_zygote req = good_zygote(), out = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(request_check_zygote(&req, sizeof(req), &out, &err), 0);
	assert_memory_equal(&req, &out, sizeof(req));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		req = good_zygote();
		memset(req.command, 0, sizeof(req.command));
		memcpy(req.command, bad[i], strlen(bad[i]));
		assert_zygote_refused(&req, "command");
	}
	req = good_zygote();
	memset(req.command, 'a', sizeof(req.command));
	assert_zygote_refused(&req, "command");
	req = good_zygote();
	req.command[sizeof(req.command) - 1] = 'x';
	assert_zygote_refused(&req, "command");
}

static void modules_are_names_and_nothing_else(void **state)
{
	static const char *const bad[] = {"os;x", "a/b", "a\nb", "a=b", "-c", "a\tb", "\xc3\xa4"};
	struct engine_zygote req = good_zygote();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		req = good_zygote();
		memset(req.modules, 0, sizeof(req.modules));
		memcpy(req.modules, bad[i], strlen(bad[i]));
		assert_zygote_refused(&req, "modules");
	}
	req = good_zygote();
	memset(req.modules, 'a', sizeof(req.modules));
	assert_zygote_refused(&req, "modules");
}

static void tenants_of_zygotes_are_names(void **state)
{
	static const char *const bad[] = {"a/b", "..", "a b", "a\n", "\xc3\xa4"};
	struct engine_zygote req;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		req = good_zygote();
		memcpy(req.tenant, bad[i], strlen(bad[i]));
		assert_zygote_refused(&req, "tenant");
	}
	req = good_zygote();
	req.padding[1] = 1;
	assert_zygote_refused(&req, "tenant");
}

static void numbers_of_zygotes_have_two_ends(void **state)
{
	struct engine_zygote req = good_zygote(), out = {0};
	struct engine_request box = create_request();
	struct error err = {0};

	(void)state;
	req.zygote = 0;
	assert_zygote_refused(&req, "zygote");
	req.zygote = ENGINE_ZYGOTES_MAX + 1;
	assert_zygote_refused(&req, "zygote");
	req = good_zygote();
	req.seq = 0;
	assert_zygote_refused(&req, "seq");
	req = good_zygote();
	req.op = ENGINE_CREATE;
	assert_int_equal(request_check_zygote(&req, sizeof(req), &out, &err), -1);
	memset(&err, 0, sizeof(err));
	assert_int_equal(request_check_zygote(&req, sizeof(req) - 1, &out, &err), -1);
	box.zygote = ENGINE_ZYGOTES_MAX;
	assert_int_equal(check(&box, &err), 0);
	box.zygote = ENGINE_ZYGOTES_MAX + 1;
	assert_refused(&box, "zygote");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_valid_request_is_unchanged),
		cmocka_unit_test(every_other_size_is_refused),
		cmocka_unit_test(only_requests_are_operations),
		cmocka_unit_test(handover_takes_no_arguments),
		cmocka_unit_test(a_box_id_that_could_leave_its_directory_is_refused),
		cmocka_unit_test(a_box_id_ends_inside_its_field_and_nothing_follows),
		cmocka_unit_test(the_id_of_a_refused_request_is_echoed_only_if_it_is_one),
		cmocka_unit_test(every_limit_has_two_ends),
		cmocka_unit_test(a_box_has_one_kind_of_network),
		cmocka_unit_test(ranges_are_for_an_interface),
		cmocka_unit_test(unknown_flags_are_refused),
		cmocka_unit_test(a_root_is_a_name_and_comes_with_its_flag),
		cmocka_unit_test(packages_are_a_name_and_come_with_their_flag),
		cmocka_unit_test(fields_of_other_operations_must_be_zero),
		cmocka_unit_test(sequence_zero_stands_for_events),
		cmocka_unit_test(the_default_limits_hold),
		cmocka_unit_test(nothing_goes_above_what_the_operator_allows),
		cmocka_unit_test(a_zygote_is_named_by_a_file_of_the_runners),
		cmocka_unit_test(modules_are_names_and_nothing_else),
		cmocka_unit_test(tenants_of_zygotes_are_names),
		cmocka_unit_test(numbers_of_zygotes_have_two_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
