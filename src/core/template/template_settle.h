/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: whether a template can be used here: its root, the programs and packages in it. */

#include "base/attr.h"
#include "base/error.h"
#include "core/template/template.h"

struct runners;

#define TEMPLATE_LIST_MAX 256 /* packages, modules */

struct template_host {
	const struct runners *runners;
	const char *const *bases; /* as in templates_config */
	bool has_roots;
};

/** template_settle - kind (unless its root is an image already), programs and problem of @t. */
void template_settle(struct template *t, const struct template_host *host);
/** template_check_lists - packages and modules are names. */
int template_check_lists(const struct template_spec *spec, struct error *err) attr_must_check;
/** template_check_packages - all of them are in the root, as far as there is one. */
int template_check_packages(const struct template *t, const char *const *bases,
                            struct error *err) attr_must_check;
