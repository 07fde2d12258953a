/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: decides whether a template is usable here: its root, programs and packages. */

#include "base/attr.h"
#include "base/error.h"
#include "core/template/template.h"
#include <sys/types.h>

struct runners;
struct toolchains;

#define TEMPLATE_LIST_MAX 256 /* packages, modules */

struct template_host {
	const struct runners *runners;
	/* NULL-terminated: parents of roots; the first has the imported images. */
	const char *const *bases;
	bool has_roots;                      /* the driver supports them */
	const struct toolchains *toolchains; /* NULL: no verdicts */
};

/** template_settle - set kind (except of images), programs and problem. */
void template_settle(struct template *t, const struct template_host *host);
/** template_is_host_image - whether an image of this name stands for the host's root. */
bool template_is_host_image(const char *image);
/** template_check_lists - packages and modules must be names. */
int template_check_lists(const struct template_spec *spec, struct error *err) attr_must_check;
/** template_lacks - index of the first of @packages that @root lacks; -1: none. */
ssize_t template_lacks(const char *const *bases, const char *root, char *const *packages);
/** template_check_packages - all must be in the root, if there is one. */
int template_check_packages(const struct template *t, const char *const *bases,
                            struct error *err) attr_must_check;
