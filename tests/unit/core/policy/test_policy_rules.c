/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "policy_fixture.h"

/* One limit: the request, three rules, the result. 0 or "": none. */
struct limit_row {
	const char *own, *chosen;
	uint64_t asked_mib;
	uint64_t granted_mib; /* 0: refused */
	enum policy_by by;
	const char *policy, *path;
};

static void memory_is_decided_by_the_nearest_rule(void **state)
{
	/* The settings: 512Mi, at most 8Gi. */
	static const struct limit_row rows[] = {
		/* clang-format off */
		{NULL, NULL, 0, 512, POLICY_BY_SETTING, "", "limits.memory"},
		{NULL, NULL, 100, 100, POLICY_BY_REQUEST, "", "resources.memory"},
		{NULL, NULL, 9000, 8192, POLICY_BY_SETTING, "", "limits.memory_max"},
		{"limits: {memory: {default: 64Mi}}", NULL, 0, 64, POLICY_BY_POLICY, "own", "limits.memory.default"},
		{"limits: {memory: {default: 64Mi}}", NULL, 100, 100, POLICY_BY_REQUEST, "", "resources.memory"},
		{"limits: {memory: {max: 64Mi}}", NULL, 0, 64, POLICY_BY_POLICY, "own", "limits.memory.max"},
		{"limits: {memory: {max: 64Mi}}", NULL, 64, 64, POLICY_BY_REQUEST, "", "resources.memory"},
		{"limits: {memory: {max: 64Mi}}", NULL, 65, 64, POLICY_BY_POLICY, "own", "limits.memory.max"},
		{"limits: {memory: {max: 64Mi, on_exceed: clamp}}", NULL, 65, 64, POLICY_BY_POLICY, "own", "limits.memory.max"},
		{"limits: {memory: {max: 64Mi, on_exceed: refuse}}", NULL, 64, 64, POLICY_BY_REQUEST, "", "resources.memory"},
		{"limits: {memory: {max: 64Mi, on_exceed: refuse}}", NULL, 65, 0, POLICY_BY_POLICY, "own", "limits.memory.max"},
		/* a default is not refused */
		{"limits: {memory: {max: 64Mi, on_exceed: refuse}}", NULL, 0, 64, POLICY_BY_POLICY, "own", "limits.memory.max"},
		/* a policy cannot exceed the operator's settings */
		{"limits: {memory: {default: 16Gi, max: 64Gi}}", NULL, 0, 8192, POLICY_BY_SETTING, "", "limits.memory_max"},
		{"limits: {memory: {max: 64Gi}}", NULL, 30000, 8192, POLICY_BY_SETTING, "", "limits.memory_max"},
		{"limits: {memory: {max: 64Gi, on_exceed: refuse}}", NULL, 30000, 0, POLICY_BY_SETTING, "", "limits.memory_max"},
		/* of two policies the narrower applies */
		{"limits: {memory: {max: 64Mi}}", "limits: {memory: {max: 32Mi}}", 99, 32, POLICY_BY_POLICY, "chosen", "limits.memory.max"},
		{"limits: {memory: {max: 32Mi}}", "limits: {memory: {max: 64Mi}}", 99, 32, POLICY_BY_POLICY, "own", "limits.memory.max"},
		{"limits: {memory: {max: 32Mi}}", "limits: {memory: {default: 64Mi}}", 0, 32, POLICY_BY_POLICY, "own", "limits.memory.max"},
		{"limits: {memory: {default: 32Mi}}", "limits: {memory: {default: 64Mi}}", 0, 64, POLICY_BY_POLICY, "chosen", "limits.memory.default"},
		{"limits: {memory: {on_exceed: refuse}}", "limits: {memory: {max: 32Mi}}", 33, 0, POLICY_BY_POLICY, "chosen", "limits.memory.max"},
		{"limits: {memory: {max: 32Mi}}", "limits: {memory: {on_exceed: refuse}}", 33, 0, POLICY_BY_POLICY, "own", "limits.memory.max"},
		{"limits: {memory: {max: 32Mi, on_exceed: refuse}}", "limits: {memory: {on_exceed: clamp}}", 33, 0, POLICY_BY_POLICY, "own", "limits.memory.max"},
		/* clang-format on */
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct limit_row *row = &rows[i];
		const struct policy_explanation *e;

		use(f, row->own, row->chosen);
		f->request.memory_bytes = row->asked_mib * MIB;
		e = ask(f);
		if (row->granted_mib == 0) {
			expect_refused(e, ERR_DENIED, "resources.memory",
			               "is above the maximum of");
			expect_rule(&e->refused, row->by, row->policy, row->path);
			continue;
		}
		expect_allowed(e);
		assert_int_equal(e->decision.spec.limits.memory_bytes, row->granted_mib * MIB);
		assert_int_equal(e->decision.grants[POLICY_MEMORY].granted, row->granted_mib * MIB);
		assert_int_equal(e->decision.grants[POLICY_MEMORY].asked, row->asked_mib * MIB);
		expect_rule(&e->decision.grants[POLICY_MEMORY].rule, row->by, row->policy,
		            row->path);
	}
}

static void every_limit_has_its_rules(void **state)
{
	static const struct {
		const char *key;
		size_t offset;
		const char *low, *high, *field;
		uint64_t low_value, asked;
	} rows[] = {
#define AT(name) offsetof(struct run_request, name)
		{"timeout", AT(timeout_us), "1s", "2s", "timeout", SEC, 3 * SEC},
		{"memory", AT(memory_bytes), "16Mi", "32Mi", "resources.memory", 16 * MIB,
	         64 * MIB},
		{"disk", AT(disk_bytes), "1Mi", "2Mi", "resources.disk", MIB, 3 * MIB},
		{"cpu", AT(cpu_millicores), "0.1", "0.2", "resources.cpu", 100, 300},
		{"processes", AT(max_processes), "20", "30", "resources.max_processes", 20, 40},
		{"output", AT(max_output_bytes), "1Ki", "2Ki", "resources.max_output", 1024, 3000},
#undef AT
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_free char *text = xasprintf(
			"limits:\n  %s:\n    default: %s\n    max: %s\n    on_exceed: refuse\n",
			rows[i].key, rows[i].low, rows[i].high);
		cleanup_free char *path = xasprintf("limits.%s.default", rows[i].key);
		cleanup_free char *max = xasprintf("policy own: limits.%s.max: ", rows[i].key);
		uint64_t *asked = (uint64_t *)(void *)((char *)&f->request + rows[i].offset);
		const struct policy_explanation *e;

		use(f, text, NULL);
		e = ask(f);
		expect_allowed(e);
		assert_int_equal(e->decision.grants[i].granted, rows[i].low_value);
		expect_rule(&e->decision.grants[i].rule, POLICY_BY_POLICY, "own", path);
		assert_int_equal(e->decision.grants[i].rule.line, 4);
		*asked = rows[i].asked;
		e = ask(f);
		expect_refused(e, ERR_DENIED, rows[i].field, max);
		assert_int_equal(e->refused.line, 5);
		*asked = 0;
	}
}

static void cores_of_the_host_are_a_maximum_too(void **state)
{
	struct fixture *f = *state;

	f->request.cpu_millicores = 9000;
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.spec.limits.cpu_millicores, 4000);
	expect_rule(&f->result.decision.grants[POLICY_CPU].rule, POLICY_BY_DRIVER, "", "cores");
	use(f, "limits: {cpu: {max: 3}}", NULL);
	expect_allowed(ask(f));
	expect_rule(&f->result.decision.grants[POLICY_CPU].rule, POLICY_BY_POLICY, "own",
	            "limits.cpu.max");
}

static void disk_is_cut_to_half_of_the_memory(void **state)
{
	struct fixture *f = *state;

	use(f, "limits: {memory: {default: 64Mi}, disk: {default: 60Mi}}", NULL);
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.grants[POLICY_DISK].granted, 32 * MIB);
	expect_rule(&f->result.decision.grants[POLICY_DISK].rule, POLICY_BY_PROGRAM, "",
	            "half of resources.memory");
}

static void the_policys_disk_does_not_follow_the_memory(void **state)
{
	struct fixture *f = *state;

	use(f, "limits: {disk: {default: 2Mi}}", NULL);
	f->request.memory_bytes = 128 * MIB;
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.grants[POLICY_DISK].granted, 2 * MIB);
}

static void a_disk_that_follows_the_memory_has_its_maximum(void **state)
{
	struct fixture *f = *state;

	use(f, "limits: {disk: {max: 3Mi}}", NULL);
	f->request.memory_bytes = 128 * MIB;
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.grants[POLICY_DISK].granted, 3 * MIB);
}

static void languages_are_allowed_and_denied_by_any_name(void **state)
{
	static const struct {
		const char *own, *chosen;
		const char *rule; /* NULL: allowed */
	} rows[] = {
		{"languages: {allow: [demo]}", NULL, NULL},
		{"languages: {allow: [d]}", NULL, NULL},
		{"languages: {allow: ['*']}", NULL, NULL},
		{"languages: {allow: [other]}", NULL,
	         "policy own: languages.allow: language 'demo' is not allowed; allowed: other"},
		{"languages: {allow: []}", NULL,
	         "policy own: languages.allow: language 'demo' is not allowed; allowed: nothing"},
		{"languages: {deny: [other]}", NULL, NULL},
		{"languages: {deny: [demo]}", NULL,
	         "policy own: languages.deny: language 'demo' is denied"},
		{"languages: {deny: [d]}", NULL, "policy own: languages.deny"},
		{"languages: {deny: ['de*']}", NULL, "policy own: languages.deny"},
		{"languages: {allow: [demo], deny: [d]}", NULL, "policy own: languages.deny"},
		{"languages: {allow: [demo]}", "languages: {deny: [demo]}",
	         "policy chosen: languages.deny"},
		{"languages: {deny: [demo]}", "languages: {allow: [demo]}",
	         "policy own: languages.deny"},
		{"languages: {allow: [other]}", "languages: {allow: [demo]}",
	         "policy own: languages.allow"},
		{"languages: {deny: [other]}", "languages: {allow: [demo]}", NULL},
	};
	static const char *const names[] = {"demo", "d"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(names); i++) {
		const char *rule = rows[i / 2].rule;

		use(f, rows[i / 2].own, rows[i / 2].chosen);
		f->request.language = (char *)names[i % 2];
		if (rule)
			expect_refused(ask(f), ERR_DENIED, "language", rule);
		else
			expect_allowed(ask(f));
	}
}

static void variables_are_allowed_and_denied(void **state)
{
	static const struct {
		const char *own, *chosen, *rule;
	} rows[] = {
		{"env: {deny: ['*TOKEN*']}", NULL,
	         "policy own: env.deny: variable 'MY_TOKEN' is denied"},
		{"env: {deny: ['OTHER*']}", NULL, NULL},
		{"env: {allow: ['APP_*']}", NULL,
	         "policy own: env.allow: variable 'MY_TOKEN' is not allowed; allowed: APP_*"},
		{"env: {allow: ['APP_*', 'MY_*']}", NULL, NULL},
		{"env: {allow: ['APP_*', 'MY_*']}", "env: {deny: ['MY_*']}",
	         "policy chosen: env.deny"},
	};
	struct fixture *f = *state;
	char *env[] = {(char *)"APP_X=1", (char *)"MY_TOKEN=secret", NULL};
	char name[80];
	char *long_env[] = {name, NULL};

	f->request.env = f->session.env = env;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		use(f, rows[i].own, rows[i].chosen);
		for (int j = 0; j < 2; j++) {
			const struct policy_explanation *e = j ? ask_session(f) : ask(f);

			if (rows[i].rule)
				expect_refused(e, ERR_DENIED, "env_vars", rows[i].rule);
			else
				expect_allowed(e);
			assert_null(strstr(e->err.msg, "secret"));
		}
	}
	memset(name, 'A', sizeof(name) - 1);
	memcpy(name + sizeof(name) - 3, "=1", 3);
	f->request.env = long_env;
	expect_refused(ask(f), ERR_INVALID, "env_vars", "at most 63 bytes");
}

static void the_network_is_exactly_as_decided(void **state)
{
	static const struct {
		const char *own, *chosen;
		int asked; /* -1: not */
		uint32_t caps;
		enum error_code code;
		const char *what;
		enum box_network granted;
	} rows[] = {
		/* clang-format off */
		{NULL, NULL, -1, 0, ERR_NONE, "", BOX_NETWORK_NONE},
		{NULL, NULL, BOX_NETWORK_NONE, 0, ERR_NONE, "", BOX_NETWORK_NONE},
		{NULL, NULL, BOX_NETWORK_HOST, ~0u, ERR_DENIED, "program: network: network 'host' is not allowed; allowed: none", 0},
		{"", NULL, BOX_NETWORK_ALLOWLIST, ~0u, ERR_DENIED, "policy own: network.mode: network 'allowlist' is not allowed", 0},
		{"network: {mode: none}", NULL, BOX_NETWORK_BRIDGE, ~0u, ERR_DENIED, "policy own: network.mode", 0},
		{"network: {mode: bridge}", NULL, BOX_NETWORK_HOST, ~0u, ERR_DENIED, "allowed: bridge", 0},
		{"network: {mode: bridge}", NULL, BOX_NETWORK_NONE, 0, ERR_NONE, "", BOX_NETWORK_NONE},
		{"network: {mode: bridge}", NULL, BOX_NETWORK_BRIDGE, 0, ERR_UNAVAILABLE, "driver: network: the policy gives network 'bridge'", 0},
		{"network: {mode: bridge}", NULL, -1, 0, ERR_UNAVAILABLE, "driver: network", 0},
		{"network: {mode: allowlist, allow: [a.example]}", NULL, -1, 0, ERR_UNAVAILABLE, "driver: network", 0},
		{"network: {mode: bridge}", NULL, -1, BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE), ERR_NONE, "", BOX_NETWORK_BRIDGE},
		{"network: {mode: bridge}", NULL, BOX_NETWORK_ALLOWLIST, BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE), ERR_UNAVAILABLE, "driver: network", 0},
		{"network: {mode: host}", "network: {mode: none}", BOX_NETWORK_HOST, ~0u, ERR_DENIED, "policy chosen: network.mode", 0},
		{"network: {mode: none}", "network: {mode: host}", BOX_NETWORK_HOST, ~0u, ERR_DENIED, "policy own: network.mode", 0},
		{"network: {mode: none}", "network: {mode: host}", -1, ~0u, ERR_NONE, "", BOX_NETWORK_NONE},
		{"network: {mode: host}", "", -1, ~0u, ERR_NONE, "", BOX_NETWORK_NONE},
		/* clang-format on */
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		use(f, rows[i].own, rows[i].chosen);
		f->driver.caps.networks = rows[i].caps;
		f->request.network_asked = f->session.network_asked = rows[i].asked >= 0;
		f->request.network = f->session.network =
			rows[i].asked < 0 ? 0 : (enum box_network)rows[i].asked;
		for (int j = 0; j < 2; j++) {
			const struct policy_explanation *e = j ? ask_session(f) : ask(f);

			if (rows[i].code != ERR_NONE) {
				expect_refused(e, rows[i].code, "network", rows[i].what);
				continue;
			}
			expect_allowed(e);
			assert_int_equal(e->decision.spec.network, rows[i].granted);
		}
	}
}

#define ALLOWLIST "network: {mode: allowlist, allow: "
#define REQUEST   "network: {request: "

static void requests_name_hosts_that_policies_grant(void **state)
{
	static const struct {
		const char *own, *chosen;
		const char *host;
		const char *rule; /* NULL: allowed */
	} rows[] = {
		/* clang-format off */
		{"", NULL, "a.example", "policy own: network.request: requests may not name 'a.example'"},
		{NULL, NULL, "a.example", "program: network.request: "},
		{ALLOWLIST "[a.example]}", NULL, "a.example", NULL},
		{ALLOWLIST "[a.example]}", NULL, "b.example", "policy own: network.request: "},
		{ALLOWLIST "[a.example]}", NULL, "a.example:443", NULL},
		{ALLOWLIST "[a.example]}", NULL, "a.example:8443", "policy own: network.request: "},
		{ALLOWLIST "['*.example']}", NULL, "a.example", NULL},
		{ALLOWLIST "['*.example']}", NULL, "*.a.example", NULL},
		{ALLOWLIST "['*.a.example']}", NULL, "*.example", "policy own: network.request: "},
		{ALLOWLIST "['*.example']}", NULL, "example", "policy own: network.request: "},
		{ALLOWLIST "['GET a.example/x']}", NULL, "a.example", "policy own: network.request: "},
		{ALLOWLIST "['GET a.example/x']}", NULL, "GET a.example/x", NULL},
		{ALLOWLIST "['TCP a.example:5432']}", NULL, "a.example:5432", "policy own: network.request: "},
		{ALLOWLIST "[a.example]}", NULL, "TCP a.example:443", "policy own: network.request: "},
		/* The list of a policy without a network grants nothing. */
		{"network: {allow: [a.example]}", NULL, "a.example", "policy own: network.request: "},
		{REQUEST "[a.example]}", NULL, "a.example", NULL},
		{REQUEST "[a.example]}", NULL, "b.example", "policy own: network.request: "},
		{REQUEST "['*']}", NULL, "b.example:8443", NULL},
		{REQUEST "['*']}", NULL, "TCP b.example:22", NULL},
		{REQUEST "['*']}", NULL, "10.0.0.0/8", "policy own: network.request: requests may not name the address '10.0.0.0/8'; only a policy"},
		{REQUEST "['*']}", NULL, "10.1.2.3", "policy own: network.request: "},
		{REQUEST "['*', 10.1.2.3]}", NULL, "10.1.2.3", NULL},
		{REQUEST "[10.0.0.0/8]}", NULL, "10.1.2.3", "policy own: network.request: "},
		{"network: {mode: bridge}", NULL, "a.example", NULL},
		{"network: {mode: bridge}", NULL, "10.1.2.3", "policy own: network.request: "},
		/* Every policy that applies must grant it. */
		{REQUEST "['*']}", "", "a.example", "policy chosen: network.request: "},
		{"", REQUEST "['*']}", "a.example", "policy own: network.request: "},
		{REQUEST "['*']}", ALLOWLIST "[a.example]}", "a.example", NULL},
		/* clang-format on */
	};
	struct fixture *f = *state;

	f->driver.caps.networks = ~0u;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *hosts[] = {(char *)(uintptr_t)rows[i].host, NULL};

		use(f, rows[i].own, rows[i].chosen);
		f->request.network_allow = f->session.network_allow = hosts;
		for (int j = 0; j < 2; j++) {
			const struct policy_explanation *e = j ? ask_session(f) : ask(f);
			const struct box_spec *spec = &e->decision.spec;

			if (rows[i].rule) {
				expect_refused(e, ERR_DENIED, "network_allow", rows[i].rule);
				continue;
			}
			expect_allowed(e);
			assert_int_equal(spec->network, BOX_NETWORK_ALLOWLIST);
			assert_int_equal(spec->rules->count, 1);
			assert_string_equal(spec->rules->texts[0], rows[i].host);
		}
		f->request.network_allow = f->session.network_allow = NULL;
	}
}

static void a_list_of_hosts_is_for_an_allowlist(void **state)
{
	struct fixture *f = *state;
	char *hosts[] = {(char *)"a.example", NULL}, *none[] = {NULL},
	     *bad[] = {(char *)"a b", NULL};

	f->driver.caps.networks = ~0u;
	use(f, REQUEST "['*']}", NULL);
	f->request.network_asked = true;
	f->request.network = BOX_NETWORK_NONE;
	f->request.network_allow = hosts;
	expect_refused(ask(f), ERR_INVALID, "network_allow", "is for network 'allowlist'");
	f->request.network = BOX_NETWORK_ALLOWLIST;
	expect_allowed(ask(f));
	f->request.network_asked = false;
	f->request.network_allow = bad;
	expect_refused(ask(f), ERR_INVALID, "network_allow", "'a b': ");
	/* No host at all: less than any policy grants. */
	f->request.network_allow = none;
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.spec.network, BOX_NETWORK_ALLOWLIST);
	assert_int_equal(f->result.decision.spec.rules->count, 0);
	use(f, "", NULL);
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.spec.network, BOX_NETWORK_NONE);
	/* A session that goes on has what is still granted. */
	f->request.network_allow = hosts;
	f->request.network_asked = f->request.network_most = true;
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.spec.rules->count, 0);
	f->request.network_most = false;
}

/* As after a reload. */
static size_t count_rules(struct fixture *f, const struct policy_box *box, const char *first)
{
	const struct policy_stack stack = {f->own, f->chosen};
	struct box_rules *rules = policy_network_rules(&f->rules, &stack, box);
	size_t count = rules->count;

	assert_string_equal(count ? rules->texts[0] : "", first);
	box_rules_unref(rules);
	return count;
}

static void named_hosts_follow_the_policies(void **state)
{
	struct fixture *f = *state;
	char *hosts[] = {(char *)"a.example", (char *)"b.example", NULL};
	const struct policy_box box = {.hosts = hosts}, other = {0};

	use(f, REQUEST "['*']}", NULL);
	assert_int_equal(count_rules(f, &box, "a.example"), 2);
	assert_int_equal(count_rules(f, &other, ""), 0);
	use(f, ALLOWLIST "[b.example, c.example, d.example]}", NULL);
	assert_int_equal(count_rules(f, &box, "b.example"), 1);
	assert_int_equal(count_rules(f, &other, "b.example"), 3);
	use(f, "", NULL);
	assert_int_equal(count_rules(f, &box, ""), 0);
}

static void unsupported_driver_features_are_refused(void **state)
{
	static const struct {
		const char *text, *what;
	} rows[] = {
		{"mounts: ['/srv/data:/data']",
	         "policy own: mounts: it gives boxes folders of the host"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		f->driver.caps.can_mount = false;
		use(f, rows[i].text, NULL);
		expect_refused(ask(f), ERR_UNAVAILABLE, "", rows[i].what);
		expect_refused(ask_session(f), ERR_UNAVAILABLE, "", rows[i].what);
		use(f, "", rows[i].text);
		expect_refused(ask(f), ERR_UNAVAILABLE, "", "policy chosen: ");
		f->driver.caps.can_mount = true;
		expect_allowed(ask(f));
	}
	f->driver.caps.can_mount = false;
	use(f, "mounts: []\n", NULL);
	expect_allowed(ask(f));
}

/* A list of tools as a request has it. */
static struct policy_explanation *ask_tools(struct fixture *f, const char *entry)
{
	char *list[] = {(char *)(uintptr_t)entry, NULL};

	f->request.mcp = list;
	(void)ask(f);
	f->request.mcp = NULL;
	return &f->result;
}

static void tools_of_servers_are_granted_by_name(void **state)
{
	struct fixture *f = *state;
	struct server_spec *git = spec_new(), *servers[] = {git, NULL};
	const struct box_rules *tools;

	free(git->name);
	git->name = xstrdup("git");
	f->config->servers = servers;
	f->driver.caps.has_mcp = true;
	use(f, "mcp: {servers: [git, absent], tools: ['git/read_*']}", NULL);
	expect_allowed(ask(f));
	assert_null(f->result.decision.spec.tools);
	expect_allowed(ask_tools(f, "git"));
	tools = f->result.decision.spec.tools;
	assert_non_null(tools);
	assert_string_equal(tools->texts[0], "0git/*");
	expect_allowed(ask_tools(f, "git/read_file"));
	expect_refused(ask_tools(f, "git/write"), ERR_DENIED, "mcp", "policy own: mcp.tools: ");
	expect_refused(ask_tools(f, "other"), ERR_DENIED, "mcp", "policy own: mcp.servers: ");
	expect_refused(ask_tools(f, "absent"), ERR_INVALID, "mcp", "there is no MCP server");
	expect_refused(ask_tools(f, "g*"), ERR_INVALID, "mcp", "'g*' is not SERVER");
	expect_refused(ask_tools(f, ""), ERR_INVALID, "mcp", "'' is not SERVER");
	use(f, "", "mcp: {servers: [git]}");
	expect_refused(ask_tools(f, "git"), ERR_DENIED, "mcp", "policy own: mcp.servers: ");
	use(f, "mcp: {servers: ['*']}", NULL);
	f->driver.caps.has_mcp = false;
	expect_refused(ask_tools(f, "git"), ERR_UNAVAILABLE, "mcp", "driver: mcp: ");
	f->config->servers = NULL;
	spec_free(git);
}

static void isolation_is_demanded_by_name_or_level(void **state)
{
	struct fixture *f = *state;

	f->config->isolation = CONFIG_ISOLATION_BEST_EFFORT;
	f->driver.caps.layers = LAYERS_ALL & ~LAYER_BIT(LAYER_LANDLOCK);
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.spec.required_layers, 0);

	use(f, "isolation: {require: [seccomp, landlock]}", NULL);
	expect_refused(ask(f), ERR_UNAVAILABLE, "",
	               "policy own: isolation.require: isolation layer 'landlock' is required");
	use(f, "isolation: {require: [seccomp]}", NULL);
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.spec.required_layers, LAYER_BIT(LAYER_SECCOMP));
	expect_rule(&f->result.decision.isolation, POLICY_BY_POLICY, "own", "isolation.require");

	use(f, "isolation: {min: full}", NULL);
	expect_refused(ask(f), ERR_UNAVAILABLE, "", "policy own: isolation.min");
	use(f, "isolation: {min: standard}", NULL);
	expect_allowed(ask(f));
	assert_true(f->result.decision.spec.required_layers & LAYER_BIT(LAYER_RLIMITS));
	f->driver.caps.layers &= ~LAYER_BIT(LAYER_IPC);
	expect_refused(ask(f), ERR_UNAVAILABLE, "", "'ipc'");
	use(f, "isolation: {min: none}", "isolation: {min: standard}");
	expect_refused(ask(f), ERR_UNAVAILABLE, "", "policy chosen: isolation.min");
}

static void layers_of_templates_are_judged(void **state)
{
	struct fixture *f = *state;
	struct image image = {.name = "pkg-1", .bytes = 2 * MIB};
	struct template t = {.spec = {.id = (char *)"own", .manager = (char *)"pip"},
	                     .packages = &image};
	static const struct {
		const char *policy, *what; /* NULL: allowed */
		enum error_code code;
	} rows[] = {
		{"packages: {deny: [pip]}", "policy own: packages.deny", ERR_DENIED},
		{"packages: {allow: [npm]}", "policy own: packages.allow", ERR_DENIED},
		{"packages: {max_size: 1Mi}", "policy own: packages.max_size", ERR_TOO_LARGE},
		{"packages: {max_size: 2Mi}", NULL, ERR_NONE},
		{"packages: {allow: [pip], deny: [npm]}", NULL, ERR_NONE},
	};

	f->request.template = f->session.template = &t;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		t.packages = &image;
		use(f, rows[i].policy, NULL);
		if (rows[i].what) {
			expect_refused(ask(f), rows[i].code, "template_id", rows[i].what);
			expect_refused(ask_session(f), rows[i].code, "template_id", rows[i].what);
		} else {
			expect_allowed(ask(f));
			assert_string_equal(f->result.decision.spec.packages, "pkg-1");
			expect_allowed(ask_session(f));
		}
		/* Without a layer there is nothing to judge. */
		t.packages = NULL;
		expect_allowed(ask(f));
	}
	use(f, NULL, "packages: {deny: ['*']}");
	t.packages = &image;
	expect_refused(ask(f), ERR_DENIED, "template_id", "policy chosen: packages.deny");
}

static void private_ranges_are_narrowed(void **state)
{
	static char *allow[] = {(char *)"10.1.0.0/16", (char *)"10.2.0.0/16", NULL};
	static const struct {
		const char *own, *chosen;
		unsigned granted;
	} rows[] = {
		{"network: {mode: bridge}", NULL, BOX_RANGES_ALL},
		{"network: {mode: bridge, ranges: []}", NULL, 0},
		{"network: {mode: bridge, ranges: [10.2.0.0/16]}", NULL, 2},
		{"network: {mode: bridge, ranges: [10.2.0.0/16, 10.1.0.0/16]}", NULL, 3},
		{"network: {mode: bridge}", "network: {mode: bridge, ranges: [10.1.0.0/16]}", 1},
		{"network: {mode: bridge, ranges: [10.2.0.0/16]}",
	         "network: {mode: bridge, ranges: [10.1.0.0/16]}", 0},
		{"network: {mode: bridge, ranges: []}", "network: {mode: bridge}", 0},
		{"network: {mode: none, ranges: [10.2.0.0/16]}", NULL, 0},
	};
	struct fixture *f = *state;
	char **before = f->config->bridge_allow;

	f->config->bridge_allow = allow;
	f->driver.caps.networks = BOX_NETWORK_BIT(BOX_NETWORK_BRIDGE);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		use(f, rows[i].own, rows[i].chosen);
		expect_allowed(ask(f));
		assert_int_equal(f->result.decision.spec.ranges, rows[i].granted);
	}
	use(f, "network: {mode: bridge, ranges: [10.0.0.0/8]}", NULL);
	expect_refused(ask(f), ERR_UNAVAILABLE, "network", "policy own: network.ranges: ");
	f->config->bridge_allow = before;
}

/* The policy that names it accepts what is missing; a policy that names the layer does not. */
static void network_host_lacks_one_layer_of_strict(void **state)
{
	struct fixture *f = *state;

	f->config->isolation = CONFIG_ISOLATION_STRICT;
	f->driver.caps.layers = LAYERS_ALL;
	f->driver.caps.required_layers = LAYERS_STRICT;
	f->driver.caps.networks = BOX_NETWORK_BIT(BOX_NETWORK_HOST);
	use(f, "network: {mode: host}", NULL);
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.spec.required_layers,
	                 LAYERS_STRICT & ~LAYER_BIT(LAYER_NET));
	use(f, "", NULL);
	expect_allowed(ask(f));
	assert_int_equal(f->result.decision.spec.required_layers, LAYERS_STRICT);
	use(f, "network: {mode: host}\nisolation: {require: [net]}", NULL);
	expect_refused(ask(f), ERR_DENIED, "network", "policy own: isolation.require: ");
	use(f, "network: {mode: host}\nisolation: {min: standard}", NULL);
	expect_refused(ask(f), ERR_DENIED, "network", "policy own: isolation.min: ");
	use(f, "network: {mode: host}", NULL);
	f->driver.caps.networks = 0;
	expect_refused(ask(f), ERR_UNAVAILABLE, "network", "host_network.enabled");
}

static void templates_hold_for_the_host_too(void **state)
{
	struct fixture *f = *state;

	use(f, "templates: {allow: [python-basic]}", NULL);
	expect_refused(ask(f), ERR_DENIED, "template_id", "template 'host' is not allowed");
	use(f, "templates: {deny: [host]}", NULL);
	expect_refused(ask_session(f), ERR_DENIED, "template_id", "policy own: templates.deny");
	use(f, "templates: {allow: [host, 'python-*']}", NULL);
	expect_allowed(ask(f));
}

static void output_may_be_ended_when_it_overflows(void **state)
{
	struct fixture *f = *state;

	expect_allowed(ask(f));
	assert_false(f->result.decision.kill_on_overflow);
	use(f, "limits: {output: {on_overflow: kill}}", NULL);
	expect_allowed(ask(f));
	assert_true(f->result.decision.kill_on_overflow);
	use(f, "limits: {output: {on_overflow: kill}}",
	    "limits: {output: {on_overflow: truncate}}");
	expect_allowed(ask(f));
	assert_true(f->result.decision.kill_on_overflow);
	expect_rule(&f->result.decision.overflow, POLICY_BY_POLICY, "own",
	            "limits.output.on_overflow");
}

static void requests_choose_only_what_they_may(void **state)
{
	struct fixture *f = *state;
	char *selectable[] = {(char *)"strict", NULL};
	const struct policies_config config = {
		.dir = "", .fallback = "default", .selectable = selectable};
	struct error err = {0};
	attr_cleanup(policies_freep) struct policies *all = policies_load(&config, &err);
	struct policy_stack stack = {0};

	(void)f;
	assert_non_null(all);
	assert_int_equal(policy_choose(all, NULL, NULL, &stack, &err), 0);
	assert_string_equal(stack.own->name, "default");
	assert_null(stack.chosen);
	assert_int_equal(policy_choose(all, "", "default", &stack, &err), 0);
	assert_null(stack.chosen);
	assert_int_equal(policy_choose(all, NULL, "strict", &stack, &err), 0);
	assert_string_equal(stack.chosen->name, "strict");
	/* a tenant may always name its own */
	assert_int_equal(policy_choose(all, "permissive", "permissive", &stack, &err), 0);
	assert_string_equal(stack.own->name, "permissive");
	assert_null(stack.chosen);
	stack = (struct policy_stack){0};
	assert_int_equal(policy_choose(all, NULL, "permissive", &stack, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_string_equal(err.field, "policy");
	assert_non_null(strstr(
		err.msg, "policy 'permissive' cannot be selected; selectable: default, strict"));
	error_clear(&err);
	/* whether a policy of that name exists is not revealed */
	assert_int_equal(policy_choose(all, NULL, "no\nsuch", &stack, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_non_null(strstr(err.msg, "policy 'no?such' cannot be selected"));
	error_clear(&err);
	assert_int_equal(policy_choose(all, "gone", NULL, &stack, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_null(stack.own);
}

/* Reproducible numbers. */
static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 33;
}

static void draw_limit(uint64_t *seed, char *ret_text, size_t size)
{
	uint64_t max = 16 + next(seed) % 64, fallback = 16 + next(seed) % (max - 15);

	(void)snprintf(ret_text, size,
	               "limits: {memory: {max: %lluMi%s, on_exceed: %s}, processes: {max: %llu}, "
	               "timeout: {max: %llus}, cpu: {max: 0.%llu}, output: {max: %lluKi}, disk: "
	               "{max: %lluMi}}\n",
	               (unsigned long long)max, "", next(seed) % 2 ? "clamp" : "refuse",
	               (unsigned long long)(16 + next(seed) % 50),
	               (unsigned long long)(1 + next(seed) % 50),
	               (unsigned long long)(1 + next(seed) % 9),
	               (unsigned long long)(1 + next(seed) % 50), (unsigned long long)fallback);
}

static void no_grant_exceeds_a_maximum(void **state)
{
	struct fixture *f = *state;
	uint64_t seed = 7;
	size_t allowed = 0, refused = 0;

	for (int round = 0; round < 3000; round++) {
		char own[400], chosen[400];
		uint64_t *asked[] = {&f->request.timeout_us,    &f->request.memory_bytes,
		                     &f->request.disk_bytes,    &f->request.cpu_millicores,
		                     &f->request.max_processes, &f->request.max_output_bytes};

		draw_limit(&seed, own, sizeof(own));
		draw_limit(&seed, chosen, sizeof(chosen));
		use(f, own, next(&seed) % 2 ? chosen : NULL);
		for (size_t i = 0; i < ARRAY_SIZE(asked); i++)
			*asked[i] = next(&seed) % 3 ? next(&seed) << (next(&seed) % 20) : 0;
		if (!ask(f)->allowed) {
			assert_true(f->result.err.code == ERR_DENIED ||
			            f->result.err.code == ERR_INVALID);
			assert_true(f->result.err.field[0]);
			refused++;
			continue;
		}
		allowed++;
		for (size_t i = 0; i <= POLICY_OUTPUT; i++) {
			const struct policy_grant *g = &f->result.decision.grants[i];

			assert_true(g->granted > 0 && g->granted <= f->own->limits[i].max.value);
			if (f->chosen)
				assert_true(g->granted <= f->chosen->limits[i].max.value);
			assert_true(g->rule.by != POLICY_BY_NOBODY);
			if (g->rule.by == POLICY_BY_REQUEST)
				assert_true(g->granted <= g->asked && g->asked - g->granted < 4096);
		}
	}
	/* Both must occur, or the test proves nothing. */
	assert_true(allowed > 100 && refused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(memory_is_decided_by_the_nearest_rule),
		TEST(every_limit_has_its_rules),
		TEST(cores_of_the_host_are_a_maximum_too),
		TEST(disk_is_cut_to_half_of_the_memory),
		TEST(the_policys_disk_does_not_follow_the_memory),
		TEST(a_disk_that_follows_the_memory_has_its_maximum),
		TEST(languages_are_allowed_and_denied_by_any_name),
		TEST(variables_are_allowed_and_denied),
		TEST(the_network_is_exactly_as_decided),
		TEST(requests_name_hosts_that_policies_grant),
		TEST(a_list_of_hosts_is_for_an_allowlist),
		TEST(named_hosts_follow_the_policies),
		TEST(unsupported_driver_features_are_refused),
		TEST(tools_of_servers_are_granted_by_name),
		TEST(isolation_is_demanded_by_name_or_level),
		TEST(layers_of_templates_are_judged),
		TEST(private_ranges_are_narrowed),
		TEST(network_host_lacks_one_layer_of_strict),
		TEST(templates_hold_for_the_host_too),
		TEST(output_may_be_ended_when_it_overflows),
		TEST(requests_choose_only_what_they_may),
		TEST(no_grant_exceeds_a_maximum),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
