/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/template_settle.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/template/images.h"
#include "core/template/root_scan.h"
#include "core/template/toolchains.h"

#define PACKAGE_LEN 128

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_."

/* As package managers write them, neither an option nor a path: manager_check decides. */
static bool is_package_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < PACKAGE_LEN && name[0] != '-' && name[0] != '/' &&
	       strspn(name, LETTERS "+-=<>!~*,[]@/:^") == len && !strstr(name, "..");
}

/* Modules become words of the runner's environment: allow only names. */
static bool is_module_name(const char *name)
{
	size_t len = strlen(name);

	return is_package_name(name) && strspn(name, LETTERS) == len && name[0] != '.' &&
	       name[len - 1] != '.';
}

static int check_list(char *const *list, const char *field, bool (*is_good)(const char *name),
                      struct error *err)
{
	size_t count = list ? str_list_count(list) : 0;
	char path[64];

	if (count > TEMPLATE_LIST_MAX)
		return error_field(err, field, "at most %d are accepted", TEMPLATE_LIST_MAX);
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(path, sizeof(path), "%s[%zu]", field, i);
		if (!is_good(list[i]))
			return error_field(err, path, "is not a valid name");
	}
	return 0;
}

int template_check_lists(const struct template_spec *spec, struct error *err)
{
	if (check_list(spec->packages, "packages", is_package_name, err) < 0)
		return -1;
	return check_list(spec->preload, "preload", is_module_name, err);
}

/* As the engine accepts. */
static bool is_root_name(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < BOX_ROOT_LEN && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static void set_problem(struct template *t, char *problem)
{
	free(t->problem);
	t->problem = problem;
}

static const char *find_program(struct root_scan *scan, const struct runner *r)
{
	if (root_scan_has_program(scan, r->program))
		return r->program;
	for (char **place = r->places; place && *place; place++)
		if (root_scan_has_program(scan, *place))
			return *place;
	return NULL;
}

static bool has_needs(struct root_scan *scan, const struct runner *r)
{
	for (char **need = r->needs; need && *need; need++)
		if (!root_scan_has_program(scan, *need))
			return false;
	return true;
}

/* Its commands may begin with them. Return: how many words were added. */
static size_t add_needs(const struct runner *r, char **pairs)
{
	size_t n = 0;

	for (char **need = r->needs; need && *need; need++) {
		pairs[n++] = xstrdup(*need);
		pairs[n++] = xstrdup(*need);
	}
	return n;
}

/* Pairs: the runner's path, the path in the root. */
static char **find_programs(struct root_scan *scan, const struct runners *runners)
{
	const struct runner *r;
	char **pairs;
	size_t n = 0;

	for (size_t i = 0; (r = runners_at(runners, i)); i++)
		n += 2 + (r->needs ? str_list_count(r->needs) : 0);
	pairs = xcalloc(2 * n + 1, sizeof(*pairs));
	n = 0;
	for (size_t i = 0; (r = runners_at(runners, i)); i++) {
		const char *place = has_needs(scan, r) ? find_program(scan, r) : NULL;

		if (place) {
			pairs[n++] = xstrdup(r->program);
			pairs[n++] = xstrdup(place);
			n += add_needs(r, pairs + n);
		} else if (r->minimal_command &&
		           root_scan_has_program(scan, r->minimal_command[0])) {
			pairs[n++] = xstrdup(r->minimal_command[0]);
			pairs[n++] = xstrdup(r->minimal_command[0]);
		}
	}
	return pairs;
}

/* Packages of a layer were installed when that was made. */
static const char *missing_package(struct root_scan *scan, const struct template *t)
{
	if (t->packages)
		return NULL;
	for (char **package = t->spec.packages; package && *package; package++)
		if (!root_scan_has_package(scan, *package) && !root_scan_has_module(scan, *package))
			return *package;
	return NULL;
}

static void settle_host(struct template *t, struct root_scan *scan,
                        const struct template_host *host)
{
	const char *missing = missing_package(scan, t);
	const struct runner *r =
		t->spec.language ? runners_find(host->runners, t->spec.language) : NULL;
	struct error err = {0};

	if (t->spec.language && !r)
		set_problem(t, xasprintf("language '%s' is not known", t->spec.language));
	else if (r && toolchains_require(host->toolchains, NULL, r, &err) < 0)
		set_problem(t, xstrdup(err.msg));
	else if (missing && template_is_builtin(t))
		set_problem(t,
		            xasprintf("%s is not installed; as root: apt-get install python3-numpy "
		                      "python3-pandas python3-matplotlib",
		                      missing));
	else if (missing)
		set_problem(t, xasprintf("package '%s' is not installed on the host", missing));
}

static void settle_root(struct template *t, struct root_scan *scan,
                        const struct template_host *host)
{
	const char *missing = missing_package(scan, t);
	const struct runner *r;

	t->programs = find_programs(scan, host->runners);
	r = t->spec.language ? runners_find(host->runners, t->spec.language) : NULL;
	if (!host->has_roots)
		set_problem(
			t, xstrdup("overlayfs cannot be mounted here: only templates on the host's "
		                   "own root can be used"));
	else if (!t->programs[0])
		set_problem(t, xstrdup("its root has no program of any language"));
	else if (missing)
		set_problem(t, xasprintf("package '%s' is not in its root", missing));
	else if (t->spec.language && (!r || !template_command(t, r)))
		set_problem(t, xasprintf("its root has no '%s'", t->spec.language));
}

/* The control plane's own image, Python and its standard library, stands for the host's root,
 * whatever its registry and tag: nothing is pulled. */
#define HOST_IMAGE "sandbox-template-python-basic"

bool template_is_host_image(const char *image)
{
	const char *slash = strrchr(image, '/');
	const char *name = slash ? slash + 1 : image;

	return strcspn(name, ":@") == strlen(HOST_IMAGE) &&
	       strncmp(name, HOST_IMAGE, strlen(HOST_IMAGE)) == 0;
}

static int open_host(struct template *t)
{
	t->kind = TEMPLATE_ON_HOST;
	return root_open(NULL, "");
}

static int find_root(struct template *t, const char *const *bases)
{
	int root = -ENOENT;

	if (t->kind == TEMPLATE_ON_IMAGE)
		return root_open(bases, t->root);
	if (str_equal(t->spec.image, TEMPLATE_HOST))
		return open_host(t);
	t->kind = TEMPLATE_ON_NOTHING;
	/* Only the operator's directories: images belong to their tenant. */
	if (is_root_name(t->spec.image) && bases && *bases)
		root = root_open(bases + 1, t->spec.image);
	return root == -ENOENT && template_is_host_image(t->spec.image) ? open_host(t) : root;
}

static void settle_layer(struct template *t, const char *const *bases)
{
	cleanup_close int layer = t->packages ? root_open(bases, t->packages->name) : -1;

	if (t->packages && layer < 0 && !t->problem)
		set_problem(t, xstrdup("the layer with its packages is gone; create it again"));
}

void template_settle(struct template *t, const struct template_host *host)
{
	cleanup_close int root = find_root(t, host->bases);
	struct root_scan scan = ROOT_SCAN(root);

	set_problem(t, NULL);
	str_list_free(TAKE_PTR(t->programs));
	if (root < 0 && t->kind == TEMPLATE_ON_NOTHING && root == -ENOENT) {
		set_problem(
			t,
			xasprintf(
				"there is no image '%.60s' here, and nothing is pulled: import it "
				"from a tar",
				t->spec.image));
	} else if (root < 0) {
		set_problem(t, xasprintf("its root cannot be opened: %s", strerror(-root)));
	} else if (t->kind == TEMPLATE_ON_HOST) {
		settle_host(t, &scan, host);
	} else {
		if (t->kind == TEMPLATE_ON_NOTHING) {
			t->kind = TEMPLATE_ON_DIRECTORY;
			(void)!str_copy(t->root, sizeof(t->root),
			                t->spec.image); /* bounded by is_root_name */
		}
		settle_root(t, &scan, host);
	}
	settle_layer(t, host->bases);
}

ssize_t template_lacks(const char *const *bases, const char *root, char *const *packages)
{
	cleanup_close int fd = root_open(bases, root);
	struct root_scan scan = ROOT_SCAN(fd);

	for (ssize_t i = 0; fd >= 0 && packages && packages[i]; i++)
		/* Other names are those of a registry. */
		if (packages[i][strspn(packages[i], LETTERS "+-=")] ||
		    (!root_scan_has_package(&scan, packages[i]) &&
		     !root_scan_has_module(&scan, packages[i])))
			return i;
	return -1;
}

int template_check_packages(const struct template *t, const char *const *bases, struct error *err)
{
	ssize_t missing;
	char path[64];

	if (t->kind == TEMPLATE_ON_NOTHING || t->packages)
		return 0;
	missing = template_lacks(bases, t->root, t->spec.packages);
	if (missing < 0)
		return 0;
	(void)snprintf(path, sizeof(path), "packages[%zd]", missing);
	return error_field(err, path, "'%.60s' is not in the root; %s", t->spec.packages[missing],
	                   t->kind == TEMPLATE_ON_HOST ? "install it on the host (apt-get install)"
	                                               : "add it to the image and import that");
}
