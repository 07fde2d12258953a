/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy/policy_internal.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/config/engines.h"
#include "core/template/template.h"

/*
 * Which engine makes the box. A name is what the request says, else its template. It is taken or
 * refused, never replaced.
 *
 *   a name      this engine
 *   "auto"      the first of the configuration that can give what is asked for
 *   no name     the default; if it is not allowed or not strong enough, the first that is
 *
 * Setting, policies, template and request may each name a least grade: the highest counts.
 */

#define FIELD     "engine"
#define LEAST     "min_isolation"
#define NAMES_LEN 120

static const struct policy_rule by_request = {.by = POLICY_BY_REQUEST, .path = FIELD};
static const struct policy_rule by_template = {.by = POLICY_BY_REQUEST, .path = "template_id"};
static const struct policy_rule by_setting = {.by = POLICY_BY_SETTING, .path = FIELD};
static const struct policy_rule by_driver = {.by = POLICY_BY_DRIVER, .path = FIELD};

struct least {
	enum box_grade grade;
	struct policy_rule rule;
};

static void raise_least(struct least *l, uint64_t grade, const struct policy_rule *rule)
{
	if (grade <= (uint64_t)l->grade)
		return;
	l->grade = (enum box_grade)grade;
	l->rule = *rule;
}

static struct least least_of(const struct policy_deciding *in)
{
	static const struct policy_rule asked = {.by = POLICY_BY_REQUEST, .path = LEAST};
	const struct template *t = in->request->template;
	struct least l = {.grade = in->rules->config->min_isolation,
	                  .rule = {.by = POLICY_BY_SETTING, .path = LEAST}};

	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy_number *least = &in->policies[i]->min_isolation;
		const struct policy_rule rule = policy_rule_of(&least->by, LEAST);

		raise_least(&l, least->value, &rule);
	}
	if (t && t->spec.min_isolation)
		raise_least(&l, box_grade_find(t->spec.min_isolation), &by_template);
	raise_least(&l, in->request->min_isolation, &asked);
	return l;
}

static const struct policy_list *find_refusing(const struct policy_deciding *in, const char *name)
{
	for (size_t i = 0; i < in->policies_count; i++) {
		const struct policy_list *list = &in->policies[i]->engines;

		if (list->items && !policy_matches(list->items, name))
			return list;
	}
	return NULL;
}

static int refuse_name(struct policy_deciding *in, const char *name, const char *field)
{
	char quoted[POLICY_QUOTE_LEN], names[NAMES_LEN] = "";
	const struct driver *d;
	size_t n = 0;

	for (size_t i = 0; (d = driver_at(in->rules->driver, i)); i++)
		if (n + strlen(d->name) + 2 < sizeof(names))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
			                      d->name);
	return error_field(in->err, field, POLICY_NO_ENGINE "%s'; configured: %s; or " ENGINE_AUTO,
	                   policy_quote(name, quoted), names);
}

static int check_list(struct policy_deciding *in, const struct driver *d)
{
	const struct policy_list *refusing = find_refusing(in, d->name);
	struct policy_rule rule;

	if (!refusing)
		return 0;
	rule = policy_rule_of(&refusing->by, "engines");
	return policy_refuse(in, ERR_DENIED, FIELD, &rule, "engine '%s' is not allowed", d->name);
}

static int check_grade(struct policy_deciding *in, const struct driver *d, const struct least *l)
{
	/* While it is away its grade is not known; it is refused anyway. */
	if (d->caps.grade >= l->grade || d->breaker.state != BREAKER_CLOSED)
		return 0;
	return policy_refuse(in, l->rule.by == POLICY_BY_REQUEST ? ERR_INVALID : ERR_DENIED, FIELD,
	                     &l->rule, "isolation '%s' is the least, and engine '%s' has '%s'",
	                     box_grade_name(l->grade), d->name, box_grade_name(d->caps.grade));
}

static int choose_named(struct policy_deciding *in, const char *name, const char *field,
                        struct policy_engines *ret)
{
	const struct least least = least_of(in);
	const struct driver *d = name[0] ? driver_find(in->rules->driver, name) : NULL;

	if (!d)
		return refuse_name(in, name, field);
	if (check_list(in, d) < 0 || check_grade(in, d, &least) < 0 ||
	    driver_check(d, in->err) < 0) {
		(void)!str_copy(in->err->field, sizeof(in->err->field), field);
		return -1;
	}
	ret->list[ret->count++] = d;
	return 0;
}

/* No engine is both allowed and strong enough: the answer says which of the two is missing. */
static int refuse_all(struct policy_deciding *in, const struct least *l)
{
	const struct driver *d, *away = NULL, *kept_out = NULL;

	for (size_t i = 0; (d = driver_at(in->rules->driver, i)); i++) {
		bool may = !find_refusing(in, d->name);
		bool is_away = d->breaker.state != BREAKER_CLOSED;

		/* The grade of one that has never answered is not known. */
		if (d->caps.grade < l->grade && (!is_away || d->caps.runtime[0]))
			continue;
		if (!may && !kept_out)
			kept_out = d;
		if (may && is_away && !away)
			away = d;
	}
	if (away)
		return driver_check(away, in->err);
	if (kept_out)
		return check_list(in, kept_out);
	return policy_refuse(in, ERR_UNAVAILABLE, LEAST, &l->rule,
	                     "isolation '%s' is the least, and no engine here has it: the operator "
	                     "adds one with the setting engines; 'millibox doctor' tells how",
	                     box_grade_name(l->grade));
}

static bool will_do(const struct policy_deciding *in, const struct driver *d, const struct least *l)
{
	return d->breaker.state == BREAKER_CLOSED && d->caps.grade >= l->grade &&
	       !find_refusing(in, d->name);
}

static int choose_first(struct policy_deciding *in, bool is_auto, struct policy_engines *ret)
{
	const struct least least = least_of(in);
	const struct driver *d = in->rules->driver;

	if (!is_auto && will_do(in, d, &least)) {
		in->d.engine = by_setting;
		ret->list[ret->count++] = d;
		return 0;
	}
	if (!is_auto) {
		const struct policy_list *refusing = find_refusing(in, d->name);

		in->d.engine = refusing ? policy_rule_of(&refusing->by, "engines") : least.rule;
	}
	for (size_t i = 0; (d = driver_at(in->rules->driver, i)); i++)
		if (will_do(in, d, &least))
			ret->list[ret->count++] = d;
	return ret->count ? 0 : refuse_all(in, &least);
}

int policy_find_engines(struct policy_deciding *in, struct policy_engines *ret)
{
	const struct template *t = in->request->template;
	const char *asked = in->request->engine;
	const char *name = asked ? asked : t ? t->spec.engine : NULL;

	*ret = (struct policy_engines){0};
	in->d.engine = asked ? by_request : by_template;
	if (!name || str_equal(name, ENGINE_AUTO))
		return choose_first(in, name != NULL, ret);
	return choose_named(in, name, asked ? FIELD : by_template.path, ret);
}

int policy_allow_engine(struct policy_deciding *in)
{
	const struct box_spec *spec = &in->d.spec;

	(void)!str_copy(in->d.spec.engine, sizeof(in->d.spec.engine), in->driver->name);
	if (spec->root[0] && !in->driver->caps.has_roots)
		return policy_refuse(in, ERR_UNAVAILABLE, "template_id", &by_driver,
		                     "engine '%s' makes boxes on the host's root only",
		                     in->driver->name);
	if (spec->packages[0] && !in->driver->caps.has_packages)
		return policy_refuse(in, ERR_UNAVAILABLE, "template_id", &by_driver,
		                     "engine '%s' makes no boxes with installed packages",
		                     in->driver->name);
	return 0;
}
