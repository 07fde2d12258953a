/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/str.h"
#include "cli/client/program.h"
#include "wire/layer.h"

#define NEWER_KERNEL "use kernel 5.12 or newer; Debian 12 has 6.1"

/* Names are those of 'millibox-engine --probe'. Layers have theirs in wire/layer, which results and
 * the daemon's log share. */
/* clang-format off */
static const struct row {
	const char *name;
	enum check_need need;
	const char *loss, *remedy;
} advices[] = {
	/* kernel features the engine needs */
	{"procfs", NEED_ALWAYS, "boxes cannot be built: their processes would have no /proc", "run Millibox on the host, or in a container whose /proc is not masked (docker run --security-opt systempaths=unconfined, see docs/containers.md)"},
	{"tmpfs_inodes", NEED_ALWAYS, "boxes cannot be built: the number of files could not be limited", NEWER_KERNEL},
	{"mount_api", NEED_ALWAYS, "boxes cannot be built: mounts could not be cloned", NEWER_KERNEL},
	{"openat2", NEED_ALWAYS, "boxes cannot be built: paths could escape a directory", NEWER_KERNEL},
	{"pidfd", NEED_ALWAYS, "boxes cannot be built: their exit could not be detected", NEWER_KERNEL},
	{"clone3", NEED_ALWAYS, "boxes cannot be built", NEWER_KERNEL},
	{"seccomp_notify", NEED_NEVER, "results do not list denied system calls", NEWER_KERNEL},
	/* causes of the above */
	{"userns_clone", NEED_NEVER, "an ordinary user cannot build boxes", "start milliboxd as root, or: sysctl -w kernel.unprivileged_userns_clone=1"},
	{"max_user_namespaces", NEED_NEVER, "user namespaces cannot be created", "sysctl -w user.max_user_namespaces=15000"},
	{"apparmor_userns", NEED_NEVER, "an ordinary user cannot build boxes", "start milliboxd as root, or: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
	/* toolchains */
	{"languages.missing", NEED_NEVER, "programs in these languages cannot run", "millibox languages --install"},
};
/* clang-format on */

#define ADVICES_COUNT (LAYER_COUNT + ARRAY_SIZE(advices))

/* Layers first, then the table. Those of layers have no remedy here. */
static struct row row_at(size_t i)
{
	enum wire_layer layer = (enum wire_layer)i;
	enum check_need need = NEED_NEVER;

	if (i >= LAYER_COUNT)
		return advices[i - LAYER_COUNT];
	if (LAYER_BIT(i) & LAYERS_STRICT)
		need = LAYER_BIT(i) & LAYERS_BEST_EFFORT ? NEED_ALWAYS : NEED_STRICT;
	return (struct row){layer_name(layer), need, layer_loss(layer), NULL};
}

static void make_remedy(enum wire_layer layer, char ret_text[LAYER_REMEDY_MAX])
{
	struct error ignored = {0};
	cleanup_free char *daemon = program_find("milliboxd", &ignored);

	layer_remedy(layer, layer_starter(geteuid() == 0, systemd_delegation()),
	             daemon ? daemon : "milliboxd", ret_text);
}

static void set_remedy(struct advice *advice, const char *text)
{
	(void)!str_copy(advice->remedy, sizeof(advice->remedy), text); /* literals are shorter */
}

int advice_find(const char *name, struct advice *ret_advice)
{
	for (size_t i = 0; i < ADVICES_COUNT; i++) {
		struct row row = row_at(i);

		if (!str_equal(row.name, name))
			continue;
		*ret_advice = (struct advice){row.name, row.need, row.loss, ""};
		if (row.remedy)
			set_remedy(ret_advice, row.remedy);
		else
			make_remedy((enum wire_layer)i, ret_advice->remedy);
		return 0;
	}
	return -ENOENT;
}

/* Settings that take user namespaces away. NULL: none of them does. */
static const struct check *find_cause(const struct checks *checks)
{
	static const char *const names[] = {"apparmor_userns", "userns_clone",
	                                    "max_user_namespaces"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct check *check = checks_find(checks, names[i]);

		if (check && check->state == CHECK_MISSING)
			return check;
	}
	return NULL;
}

int checks_advise(const struct checks *checks, const struct check *check, struct advice *ret_advice)
{
	const struct check *user = checks_find(checks, layer_name(LAYER_USER));
	const struct check *cause = find_cause(checks);
	int r = advice_find(check->name, ret_advice);
	struct advice other;

	if (r < 0 || !user || user->state != CHECK_MISSING)
		return r;
	if (user == check && cause && advice_find(cause->name, &other) == 0)
		set_remedy(ret_advice, other.remedy);
	else if (user != check && check->state == CHECK_MISSING &&
	         str_equal(user->value, check->value))
		set_remedy(ret_advice, "see 'user': without it this could not be tested");
	return r;
}

bool checks_first_remedy(const struct checks *checks, struct advice *ret_advice)
{
	for (size_t i = 0; i < checks->count; i++)
		if (checks->items[i].state == CHECK_MISSING &&
		    checks_advise(checks, &checks->items[i], ret_advice) == 0 &&
		    ret_advice->need == NEED_ALWAYS)
			return true;
	return false;
}

static bool is_layer(const char *name)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (str_equal(layer_name((enum wire_layer)i), name))
			return true;
	return false;
}

bool check_is_optional(const struct check *check)
{
	struct advice advice;

	return check->state == CHECK_MISSING && is_layer(check->name) &&
	       advice_find(check->name, &advice) == 0 && advice.need == NEED_NEVER;
}

bool checks_meet(const struct checks *checks, enum check_need need)
{
	for (size_t i = 0; i < ADVICES_COUNT; i++) {
		struct row row = row_at(i);
		const struct check *check = checks_find(checks, row.name);

		/* A check not printed counts as missing. */
		if (row.need >= need && (!check || check->state != CHECK_OK))
			return false;
	}
	return true;
}
