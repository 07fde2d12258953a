/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/policy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/language/env.h"
#include "core/language/options.h"
#include "core/language/runners.h"
#include "core/policy/policy_internal.h"
#include "core/request/run_request.h"
#include "core/template/images.h"
#include "core/template/template.h"
#include "core/template/toolchains.h"

/* Template name in rules if there is none. */
#define TEMPLATE_NONE "host"

void policy_decision_done(struct policy_decision *d)
{
	str_list_free(d->argv);
	str_list_free(d->env);
	str_list_free(d->prepare_argv);
	str_list_free(d->compile_argv);
	str_list_free(d->compile_env);
	box_rules_unref(d->spec.rules);
	box_rules_unref(d->spec.tools);
	policy_stack_unref(&d->stack);
	free(d->cuts);
	*d = (struct policy_decision){0};
}

void policy_explanation_done(struct policy_explanation *e)
{
	policy_decision_done(&e->decision);
}

static const char *const by_names[] = {
	[POLICY_BY_NOBODY] = "nobody", [POLICY_BY_REQUEST] = "request",
	[POLICY_BY_POLICY] = "policy", [POLICY_BY_SETTING] = "setting",
	[POLICY_BY_DRIVER] = "driver", [POLICY_BY_PROGRAM] = "program",
};
static_assert(ARRAY_SIZE(by_names) == POLICY_BY_COUNT, "every source has a name");

const char *policy_by_name(enum policy_by by)
{
	return by_names[by];
}

struct policy_rule policy_rule_of(const struct policy_source *by, const char *path)
{
	return (struct policy_rule){POLICY_BY_POLICY, by->policy, path, by->line};
}

const char *policy_quote(const char *text, char ret_quoted[POLICY_QUOTE_LEN])
{
	size_t n = 0;

	for (; n < POLICY_QUOTE_LEN - 4 && text[n]; n++)
		ret_quoted[n] = (char)(text[n] >= ' ' && text[n] < 0x7f ? text[n] : '?');
	(void)snprintf(ret_quoted + n, POLICY_QUOTE_LEN - n, "%s", text[n] ? "..." : "");
	return ret_quoted;
}

int policy_refuse(struct policy_deciding *in, enum error_code code, const char *field,
                  const struct policy_rule *rule, const char *fmt, ...)
{
	char what[sizeof(in->err->msg)];
	va_list args;

	va_start(args, fmt);
	/* A truncated message still begins with the rule. */
	(void)vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	(void)error_set(in->err, code, 0, "%s%s%s: %s: %s", by_names[rule->by],
	                rule->policy ? " " : "", rule->policy ? rule->policy : "", rule->path,
	                what);
	(void)!str_copy(in->err->field, sizeof(in->err->field), field); /* short literal */
	in->refused = *rule;
	return -1;
}

static int refuse_language(const struct runners *runners, const char *language, struct error *err)
{
	char known[120] = "";
	char quoted[POLICY_QUOTE_LEN];
	const struct runner *r;
	size_t n = 0;

	for (size_t i = 0; (r = runners_at(runners, i)) && n < sizeof(known); i++) {
		int added = snprintf(known + n, sizeof(known) - n, "%s%s", i ? ", " : "", r->name);

		if (added < 0)
			break;
		n += (size_t)added;
	}
	return error_field(err, "language", "unknown language '%s'; known: %s",
	                   policy_quote(language, quoted), known);
}

/* Loaders read it when a program is executed: a child of a zygote would not follow it. */
static bool has_library_path(char *const *env)
{
	static const char name[] = "LD_LIBRARY_PATH=";

	for (; env && *env; env++)
		if (strncmp(*env, name, sizeof(name) - 1) == 0)
			return true;
	return false;
}

/* Zygotes have power over boxes: they import only modules that the operator chose. Others are
 * imported inside the box. */
static void decide_zygote(struct policy_deciding *in, const char *file)
{
	const struct template *t = in->request->template;
	struct box_spec *spec = &in->d.spec;
	size_t at = 0;

	if (!file || !in->driver->caps.has_zygotes || has_library_path(in->d.env) ||
	    str_format(spec->zygote, sizeof(spec->zygote), "%s/%s", in->d.runner->name, file) < 0)
		return;
	/* The box may have another version of a module than the host. */
	if (t && t->packages)
		return;
	for (char **name = t ? t->spec.preload : NULL; name && *name; name++) {
		if (!str_list_has(in->rules->config->zygotes_modules, *name) ||
		    at + strlen(*name) + 2 > sizeof(spec->modules))
			continue;
		at += (size_t)snprintf(spec->modules + at, sizeof(spec->modules) - at, "%s%s",
		                       at ? " " : "", *name);
	}
}

static const struct toolchains *toolchains_of(const struct policy_deciding *in)
{
	const struct policy_rules *rules = in->rules;

	return toolchains_find(rules->toolchains,
	                       in->driver == rules->driver ? "" : in->driver->name);
}

static int decide_runner(struct policy_deciding *in)
{
	const char *language = in->request->language;
	const struct template *t = in->request->template;
	struct policy_decision *d = &in->d;

	if (!language || !*language)
		return error_field(in->err, "language", "is required");
	d->runner = runners_find(in->rules->runners, language);
	if (!d->runner)
		return refuse_language(in->rules->runners, language, in->err);
	/* Check permission before existence. */
	if (policy_allow_language(in) < 0)
		return -1;
	if (!template_command(t, d->runner))
		return error_field(in->err, "language", "template '%s' has no %s", t->spec.id,
		                   d->runner->name);
	d->session_command = template_session_command(t, d->runner);
	/* A layer of packages may have what the root lacks. */
	if (toolchains_require(t && t->packages ? NULL : toolchains_of(in), t, d->runner, in->err) <
	    0)
		return -1;
	if (t && t->root[0])
		(void)!str_copy(d->spec.root, sizeof(d->spec.root), t->root);
	if (options_check(d->runner, in->request->options, in->err) < 0)
		return -1;
	if (in->request->ask && !d->runner->asks)
		return error_field(in->err, "event", "language '%s' has no handlers",
		                   d->runner->name);
	d->report_bytes = d->runner->report ? POLICY_REPORT_BYTES : 0;
	d->handler = in->request->ask != NULL;
	return 0;
}

static int check_code(const struct config *config, const struct run_request *request,
                      struct error *err)
{
	if (!request->code || request->code_len == 0)
		return error_field(err, "code", "is empty");
	if (request->code_len > config->max_code_bytes)
		return error_set(err, ERR_TOO_LARGE, 0,
		                 "code: %zu bytes, at most %llu are accepted", request->code_len,
		                 (unsigned long long)config->max_code_bytes);
	/* Interpreters disagree on what follows a NUL: shown and executed code could differ. */
	if (memchr(request->code, 0, request->code_len))
		return error_field(err, "code", "contains NUL");
	return 0;
}

int policy_check_name(const char *name)
{
	size_t parts = 0;

	if (strlen(name) > POLICY_NAME_BYTES)
		return -EINVAL;
	for (const char *part = name;;) {
		size_t len = strcspn(part, "/");

		if (len == 0 || len > POLICY_NAME_PART || ++parts > POLICY_NAME_PARTS)
			return -EINVAL;
		if (part[0] == '.' && (len == 1 || (len == 2 && part[1] == '.')))
			return -EINVAL;
		if (!part[len])
			return 0;
		part += len + 1;
	}
}

/* '/' sorts first: a folder's contents directly follow its name. */
static int compare_names(const void *a, const void *b)
{
	const unsigned char *x = *(const unsigned char *const *)a;
	const unsigned char *y = *(const unsigned char *const *)b;

	while (*x && *x == *y) {
		x++;
		y++;
	}
	return (*x == '/' ? 1 : *x * 2) - (*y == '/' ? 1 : *y * 2);
}

/* Sorting makes colliding names neighbours: the cost stays bounded by their length. */
static int check_collisions(const struct run_request *request, struct error *err)
{
	const char *names[POLICY_FILES_MAX] = {NULL};
	char quoted[POLICY_QUOTE_LEN];

	for (size_t i = 0; i < request->files_count; i++)
		names[i] = request->files[i].name;
	qsort(names, request->files_count, sizeof(names[0]), compare_names);
	for (size_t i = 1; i < request->files_count; i++) {
		size_t len = strlen(names[i - 1]);

		/* Equal, or a folder above. */
		if (strncmp(names[i - 1], names[i], len) == 0 &&
		    (!names[i][len] || names[i][len] == '/'))
			return error_field(err, "files", "'%s' collides with another file",
			                   policy_quote(names[i], quoted));
	}
	return 0;
}

static int check_files(const struct run_request *request, uint64_t room, struct error *err)
{
	char quoted[POLICY_QUOTE_LEN];
	uint64_t total = 0;

	if (request->files_count > POLICY_FILES_MAX)
		return error_field(err, "files", "%zu files, at most %d are accepted",
		                   request->files_count, POLICY_FILES_MAX);
	for (size_t i = 0; i < request->files_count; i++) {
		if (policy_check_name(request->files[i].name) < 0)
			return error_field(err, "files",
			                   "'%s' is not a valid file name: relative, at most %d "
			                   "parts of 1 to %d bytes, without '.' and '..'",
			                   policy_quote(request->files[i].name, quoted),
			                   POLICY_NAME_PARTS, POLICY_NAME_PART);
		total += request->files[i].len;
	}
	if (total > room)
		return error_field(err, "files", "%llu bytes, but resources.disk is %llu",
		                   (unsigned long long)total, (unsigned long long)room);
	return request->files_count > 1 ? check_collisions(request, err) : 0;
}

static int check_args(char *const *args, struct error *err)
{
	size_t count = 0;
	size_t bytes = 0;

	for (; args && args[count]; count++)
		bytes += strlen(args[count]) + 1;
	if (count > POLICY_ARGS_MAX || bytes > POLICY_ARGS_BYTES)
		return error_field(err, "args", "at most %d arguments and %d bytes are accepted",
		                   POLICY_ARGS_MAX, POLICY_ARGS_BYTES);
	return 0;
}

void policy_stack_ref(const struct policy_stack *stack)
{
	if (stack->own)
		(void)policy_ref(stack->own);
	if (stack->chosen)
		(void)policy_ref(stack->chosen);
}

void policy_stack_unref(struct policy_stack *stack)
{
	policy_unref((struct policy *)(uintptr_t)stack->own);
	policy_unref((struct policy *)(uintptr_t)stack->chosen);
	*stack = (struct policy_stack){0};
}

static int refuse_choice(const struct policies *all, const struct policy *own, const char *asked,
                         struct error *err)
{
	char quoted[POLICY_QUOTE_LEN];
	char names[120] = "";
	const struct policy *p;
	size_t n = 0;

	for (size_t i = 0; (p = policies_at(all, i)); i++) {
		bool can = p == own || policies_can_select(all, p->name);

		if (can && n + strlen(p->name) + 3 < sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
			                      p->name);
	}
	(void)error_set(err, ERR_DENIED, 0,
	                "setting: policy.selectable: policy '%s' cannot be selected; "
	                "selectable: %s",
	                policy_quote(asked, quoted), names);
	(void)!str_copy(err->field, sizeof(err->field), "policy");
	return -1;
}

int policy_choose(const struct policies *all, const char *tenants, const char *asked,
                  struct policy_stack *ret_stack, struct error *err)
{
	const char *name = tenants && *tenants ? tenants : policies_default(all);
	struct policy_stack stack = {.own = policies_find(all, name)};

	/* Fail closed: tenants of a removed policy have none. */
	if (!stack.own)
		return error_set(err, ERR_UNAVAILABLE, 0, "the tenant's policy '%s' does not exist",
		                 name);
	if (asked && !str_equal(asked, name)) {
		stack.chosen = policies_find(all, asked);
		if (!stack.chosen || !policies_can_select(all, asked))
			return refuse_choice(all, stack.own, asked, err);
	}
	*ret_stack = stack;
	return 0;
}

/* NULL: no such command, or the root lacks the program. */
static char **prepare_argv(const struct template *t, const struct runner *runner,
                           char *const *command)
{
	if (!command)
		return NULL;
	return policy_argv(&(struct policy_command){
		.runner = runner,
		.template = t,
		.command = command,
		.source = runner->source,
		.args = runner->preload && t ? t->spec.preload : NULL,
	});
}

static int allow_box(struct policy_deciding *in)
{
	const struct run_request *r = in->request;
	const char *template = r->template ? r->template->spec.id : TEMPLATE_NONE;

	if (env_check(r->env, in->err) < 0 || policy_allow_env(in) < 0 ||
	    policy_allow_template(in, template) < 0 || policy_allow_layer(in) < 0 ||
	    policy_allow_network(in) < 0 || policy_allow_secrets(in) < 0 ||
	    policy_allow_mcp(in) < 0 || policy_allow_extras(in) < 0 ||
	    policy_allow_isolation(in) < 0)
		return -1;
	if (r->template && r->template->packages)
		(void)!str_copy(in->d.spec.packages, sizeof(in->d.spec.packages),
		                r->template->packages->name);
	return policy_allow_engine(in);
}

static unsigned env_extras(const struct policy_deciding *in)
{
	return (in->d.spec.network == BOX_NETWORK_ALLOWLIST ? ENV_PROXY : 0) |
	       (in->d.spec.tools ? ENV_TOOLS : 0);
}

static char *const *secret_env(const struct policy_deciding *in)
{
	return in->d.spec.rules ? in->d.spec.rules->env : NULL;
}

/* The compiler has neither the caller's variables nor a network. */
static void decide_compile(struct policy_deciding *in)
{
	const struct runner *runner = in->d.runner;
	cleanup_str_list char **own = template_runner_env(in->request->template, runner);

	in->d.compile_env = env_make(own, runner->compile_env, 0, NULL);
	in->d.compile_argv = policy_argv(&(struct policy_command){
		.runner = runner,
		.template = in->request->template,
		.command = runner->compile_command,
		.source = runner->source,
		.artifact = POLICY_ARTIFACT,
		.request = in->request,
		.options = in->request->options,
		.compile = POLICY_COMPILE_SEND,
	});
}

static char **make_env(const struct policy_deciding *in, char *const *own)
{
	cleanup_str_list char **runner = template_runner_env(in->request->template, in->d.runner);

	return env_make(runner, own, env_extras(in), secret_env(in));
}

static int decide_exec(struct policy_deciding *in)
{
	const struct run_request *r = in->request;
	struct error *err = in->err;

	if (decide_runner(in) < 0 || check_code(in->rules->config, r, err) < 0 ||
	    policy_decide_limits(in) < 0 ||
	    check_files(r, in->d.spec.limits.workspace_bytes, err) < 0 ||
	    check_args(r->args, err) < 0 || allow_box(in) < 0)
		return -1;
	if (options_compile(in->d.runner, r->options))
		policy_decide_compile_limits(in);
	if (r->in_session)
		return 0;
	if (options_compile(in->d.runner, r->options))
		decide_compile(in);
	in->d.env = make_env(in, r->env);
	in->d.argv = policy_argv(&(struct policy_command){
		.runner = in->d.runner,
		.template = r->template,
		.command = template_command(r->template, in->d.runner),
		.source = in->d.runner->source,
		.artifact = POLICY_ARTIFACT,
		.args = r->args,
		.options = r->options,
	});
	/* A process made ahead of the request has no options. */
	if (r->options && *r->options)
		return 0;
	decide_zygote(in, in->d.runner->zygote);
	in->d.prepare_argv = prepare_argv(r->template, in->d.runner,
	                                  template_prepare_command(r->template, in->d.runner));
	return 0;
}

static int decide_session(struct policy_deciding *in)
{
	if (policy_allow_session(in) < 0 || decide_runner(in) < 0 || policy_decide_limits(in) < 0 ||
	    allow_box(in) < 0)
		return -1;
	in->d.env = make_env(in, in->request->env);
	decide_zygote(in, in->d.runner->session_zygote);
	if (session_mode_has_box(in->d.mode))
		in->d.spec.keep = in->driver->caps.can_keep;
	if (in->d.mode != SESSION_PERSISTENT)
		return 0;
	in->d.prepare_argv =
		prepare_argv(in->request->template, in->d.runner, in->d.session_command);
	in->d.resident = in->d.prepare_argv;
	return 0;
}

static void apply_stack(struct policy_deciding *in, const struct policy_stack *stack)
{
	in->policies_count = 0;
	if (stack->chosen)
		in->policies[in->policies_count++] = stack->chosen;
	if (stack->own)
		in->policies[in->policies_count++] = stack->own;
	in->d.stack = *stack;
	policy_stack_ref(stack);
}

/* The box by @driver. */
static int decide_with(struct policy_deciding *in, const struct driver *driver)
{
	const struct run_request *asked = in->request;
	cleanup_str_list char **env = template_env(asked->template, asked->env);
	const struct run_request filled = run_request_fill(asked, env);
	int r;

	in->driver = driver;
	in->request = &filled;
	in->d.own_env = (asked->env && *asked->env) ||
	                (asked->template && !template_is_builtin(asked->template) && env);
	r = in->session ? decide_session(in) : decide_exec(in);
	in->request = asked;
	if (r == 0)
		policy_note_cuts(in);
	return r;
}

/* An engine that cannot give what is asked for is no reason to refuse, if there is another that
 * may. */
static int decide_request(struct policy_deciding *in, const struct policy_stack *stack,
                          struct policy_decision *ret_decision)
{
	struct policy_engines engines;
	struct policy_rule rule;
	int r;

	apply_stack(in, stack);
	r = policy_find_engines(in, &engines);
	rule = in->d.engine;
	for (size_t i = 0; i < engines.count; i++) {
		if (i > 0) {
			policy_decision_done(&in->d);
			error_clear(in->err);
			apply_stack(in, stack);
			in->d.engine = rule;
			in->refused = (struct policy_rule){0};
		}
		r = decide_with(in, engines.list[i]);
		if (r == 0 || in->err->code != ERR_UNAVAILABLE)
			break;
	}
	if (r < 0)
		policy_decision_done(&in->d);
	else
		*ret_decision = in->d;
	return r;
}

/* As an execution without code. Borrowed. */
static struct run_request box_request(const struct session_request *r)
{
	const struct template *t = r->template;

	return (struct run_request){
		.language = r->language             ? r->language
	                    : t && t->spec.language ? t->spec.language
	                                            : (char *)(uintptr_t)POLICY_LANGUAGE,
		.template = r->template,
		.env = r->env,
		.memory_bytes = r->memory_bytes,
		.disk_bytes = r->disk_bytes,
		.cpu_millicores = r->cpu_millicores,
		.max_processes = r->max_processes,
		.engine = r->engine,
		.min_isolation = r->min_isolation,
		.network = r->network,
		.network_asked = r->network_asked,
		.network_most = r->network_most,
		.network_allow = r->network_allow,
		.tenant = r->tenant,
		.secrets = r->secrets,
		.mcp = r->mcp,
	};
}

int policy_decide(const struct policy_rules *rules, const struct policy_stack *stack,
                  const struct run_request *request, struct policy_decision *ret_decision,
                  struct error *err)
{
	struct policy_deciding in = {.rules = rules, .request = request, .err = err};

	return decide_request(&in, stack, ret_decision);
}

int policy_decide_session(const struct policy_rules *rules, const struct policy_stack *stack,
                          const struct session_request *request,
                          struct policy_decision *ret_decision, struct error *err)
{
	const struct run_request box = box_request(request);
	struct policy_deciding in = {
		.rules = rules, .request = &box, .session = request, .err = err};

	return decide_request(&in, stack, ret_decision);
}

static void lower(uint64_t *value, const struct policy_number *max)
{
	if (max->value > 0 && max->value < *value)
		*value = max->value;
}

int policy_decide_packages(const struct policy_rules *rules, const struct policy_stack *stack,
                           const char *manager, struct policy_packages *ret_limits,
                           struct error *err)
{
	struct policy_deciding in = {.rules = rules, .err = err};
	struct policy_packages limits = {.timeout_us = rules->config->packages_timeout_us,
	                                 .max_bytes = rules->config->packages_layer_bytes};
	int r;

	apply_stack(&in, stack);
	r = policy_allow_manager(&in, "packages", manager);
	for (size_t i = 0; i < in.policies_count; i++) {
		lower(&limits.timeout_us, &in.policies[i]->packages_timeout);
		lower(&limits.max_bytes, &in.policies[i]->packages_bytes);
	}
	policy_decision_done(&in.d);
	*ret_limits = limits;
	return r;
}

int policy_check_network(const struct policy_rules *rules, const struct policy_stack *stack,
                         enum box_network network, uint16_t *ret_ranges, struct error *err)
{
	struct policy_deciding in = {.rules = rules, .err = err};
	int r;

	apply_stack(&in, stack);
	r = policy_keep_network(&in, network);
	if (r >= 0)
		*ret_ranges = in.d.spec.ranges;
	policy_decision_done(&in.d);
	return r;
}

int policy_check_env(const struct policy_rules *rules, const struct policy_stack *stack,
                     char *const *env, struct error *err)
{
	const struct run_request request = {.env = (char **)(uintptr_t)env};
	struct policy_deciding in = {.rules = rules, .request = &request, .err = err};
	int r;

	apply_stack(&in, stack);
	r = env_check(env, err) < 0 || policy_allow_env(&in) < 0 ? -1 : 0;
	policy_decision_done(&in.d);
	return r;
}

static void explain_request(struct policy_deciding *in, const struct policy_stack *stack,
                            struct policy_explanation *ret)
{
	in->err = &ret->err;
	ret->stack = *stack;
	ret->allowed = decide_request(in, stack, &ret->decision) == 0;
	ret->refused = in->refused;
}

void policy_explain(const struct policy_rules *rules, const struct policy_stack *stack,
                    const struct run_request *request, struct policy_explanation *ret_explanation)
{
	struct policy_deciding in = {.rules = rules, .request = request};

	explain_request(&in, stack, ret_explanation);
}

void policy_explain_session(const struct policy_rules *rules, const struct policy_stack *stack,
                            const struct session_request *request,
                            struct policy_explanation *ret_explanation)
{
	const struct run_request box = box_request(request);
	struct policy_deciding in = {.rules = rules, .request = &box, .session = request};

	explain_request(&in, stack, ret_explanation);
}
