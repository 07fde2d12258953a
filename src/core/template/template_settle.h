/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: decides whether a template is usable here: its root, and the programs and packages in it.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/template/template.h"

struct runners;

#define TEMPLATE_LIST_MAX 256 /* packages, modules */

struct template_host {
	const struct runners *runners;
	/* NULL-terminated: directories with roots; the first one has the imported images. */
	const char *const *bases;
	bool has_roots; /* the driver can create boxes on them */
};

/** template_settle - set kind (unless its root is an image), programs and problem of @t. */
void template_settle(struct template *t, const struct template_host *host);
/** template_check_lists - check that packages and modules are names. */
int template_check_lists(const struct template_spec *spec, struct error *err) attr_must_check;
/** template_check_packages - check that all are in the root, if there is one. */
int template_check_packages(const struct template *t, const char *const *bases,
                            struct error *err) attr_must_check;
