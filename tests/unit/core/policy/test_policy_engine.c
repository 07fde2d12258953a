/* SPDX-License-Identifier: Apache-2.0 */
/* Which engine makes the box. */
#include "policy_fixture.h"

/* Three engines: native (the default), strong (gVisor), away. */
struct engines {
	struct driver strong, away;
	struct driver_set set;
};

static struct engines *add_engines(struct fixture *f)
{
	static struct engines e;

	e = (struct engines){
		.strong = {.name = "strong",
	                   .caps = {.layers = LAYERS_ALL, .grade = BOX_GRADE_GVISOR}},
		.away = {.name = "away",
	                 .caps = {.layers = LAYERS_ALL, .grade = BOX_GRADE_VM},
	                 .breaker = {.state = BREAKER_OPEN, .why = "it died"}},
		.set = {.count = 3, .list = {&f->driver, &e.strong, &e.away}},
	};
	f->driver.set = e.strong.set = e.away.set = &e.set;
	return &e;
}

static void expect_engine(struct fixture *f, const char *name)
{
	for (int i = 0; i < 2; i++) {
		const struct policy_explanation *e = i ? ask_session(f) : ask(f);

		expect_allowed(e);
		assert_string_equal(e->decision.spec.engine, name);
	}
}

static void the_engine_of_a_request(void **state)
{
	static const struct {
		const char *asked;
		enum box_grade least;
		const char *own;     /* policy */
		const char *made_by; /* NULL: refused with: */
		enum error_code code;
		const char *says;
	} rows[] = {
		/* clang-format off */
		{NULL, BOX_GRADE_NAMESPACE, "", "native", ERR_NONE, ""},
		{"native", BOX_GRADE_NAMESPACE, "", "native", ERR_NONE, ""},
		{"strong", BOX_GRADE_NAMESPACE, "", "strong", ERR_NONE, ""},
		{"auto", BOX_GRADE_NAMESPACE, "", "native", ERR_NONE, ""},
		{NULL, BOX_GRADE_GVISOR, "", "strong", ERR_NONE, ""},
		{"auto", BOX_GRADE_GVISOR, "", "strong", ERR_NONE, ""},
		/* Never another than the one that was named. */
		{"native", BOX_GRADE_GVISOR, "", NULL, ERR_INVALID, "engine 'native' has 'namespace'"},
		{"away", BOX_GRADE_NAMESPACE, "", NULL, ERR_UNAVAILABLE, "engine 'away' is not available"},
		{"auto", BOX_GRADE_VM, "", NULL, ERR_UNAVAILABLE, "engine 'away' is not available"},
		{NULL, BOX_GRADE_VM, "", NULL, ERR_UNAVAILABLE, "engine 'away' is not available"},
		{"other", BOX_GRADE_NAMESPACE, "", NULL, ERR_INVALID, "configured: native, strong, away; or auto"},
		{"", BOX_GRADE_NAMESPACE, "", NULL, ERR_INVALID, "there is no engine"},
		/* Policies. */
		{NULL, BOX_GRADE_NAMESPACE, "engines: [strong]", "strong", ERR_NONE, ""},
		{"auto", BOX_GRADE_NAMESPACE, "engines: ['str*']", "strong", ERR_NONE, ""},
		{"native", BOX_GRADE_NAMESPACE, "engines: [strong]", NULL, ERR_DENIED, "policy own: engines: engine 'native' is not allowed"},
		{NULL, BOX_GRADE_NAMESPACE, "engines: [none]", NULL, ERR_DENIED, "policy own: engines"},
		{NULL, BOX_GRADE_NAMESPACE, "min_isolation: gvisor", "strong", ERR_NONE, ""},
		{"native", BOX_GRADE_NAMESPACE, "min_isolation: gvisor", NULL, ERR_DENIED, "policy own: min_isolation"},
		{NULL, BOX_GRADE_NAMESPACE, "min_isolation: gvisor\nengines: [native]", NULL, ERR_DENIED, "policy own: engines: engine 'strong' is not allowed"},
		/* clang-format on */
	};
	struct fixture *f = *state;

	(void)add_engines(f);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		use(f, rows[i].own, NULL);
		f->request.engine = f->session.engine = (char *)(uintptr_t)rows[i].asked;
		f->request.min_isolation = f->session.min_isolation = rows[i].least;
		if (rows[i].made_by) {
			expect_engine(f, rows[i].made_by);
			continue;
		}
		for (int j = 0; j < 2; j++) {
			const struct policy_explanation *e = j ? ask_session(f) : ask(f);

			assert_false(e->allowed);
			if (e->err.code != rows[i].code || !strstr(e->err.msg, rows[i].says))
				fail_msg("row %zu: %s", i, e->err.msg);
		}
	}
}

/* What an engine lacks is a reason to take another only if any may be taken. */
static void auto_finds_the_one_that_has_what_is_asked_for(void **state)
{
	struct fixture *f = *state;
	struct engines *e = add_engines(f);

	use(f, "network: {mode: bridge}", NULL);
	e->strong.caps.networks = BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE);
	f->request.network_asked = f->session.network_asked = true;
	f->request.network = f->session.network = BOX_NETWORK_BRIDGE;
	assert_false(ask(f)->allowed);
	assert_int_equal(f->result.err.code, ERR_UNAVAILABLE);
	f->request.engine = f->session.engine = (char *)"auto";
	expect_engine(f, "strong");
	/* If nobody has it, the first one's reason counts. */
	e->strong.caps.networks = 0;
	assert_false(ask(f)->allowed);
	assert_non_null(strstr(f->result.err.msg, "network 'bridge'"));
}

static void the_setting_is_a_least_grade_too(void **state)
{
	struct fixture *f = *state;

	f->config->min_isolation = BOX_GRADE_GVISOR;
	assert_false(ask(f)->allowed);
	assert_int_equal(f->result.err.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(f->result.err.msg, "setting: min_isolation"));
	(void)add_engines(f);
	expect_engine(f, "strong");
}

static void a_template_names_engine_and_grade(void **state)
{
	struct fixture *f = *state;
	struct template t = {.spec = {.id = (char *)"t", .engine = (char *)"strong"}};

	(void)add_engines(f);
	f->request.template = f->session.template = &t;
	expect_engine(f, "strong");
	f->request.engine = f->session.engine = (char *)"native";
	expect_engine(f, "native");
	t.spec.min_isolation = (char *)"gvisor";
	assert_false(ask(f)->allowed);
	assert_int_equal(f->result.err.code, ERR_INVALID);
	t.spec.engine = (char *)"gone";
	f->request.engine = NULL;
	assert_false(ask(f)->allowed);
	assert_string_equal(f->result.err.field, "template_id");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_engine_of_a_request),
		TEST(auto_finds_the_one_that_has_what_is_asked_for),
		TEST(the_setting_is_a_least_grade_too),
		TEST(a_template_names_engine_and_grade),
	};

	return cmocka_run_group_tests_name("core/policy/policy_engine", tests, NULL, NULL);
}
