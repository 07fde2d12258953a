/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the body of a request that creates or changes a template; see decode.h. */

#include "api/json/fields.h"
#include "base/attr.h"
#include "base/error.h"
#include "core/template/template.h"
#include <stddef.h>

extern const struct fields decode_template_fields, decode_template_change_fields;

/** decode_template - @partial: no field is required. */
int decode_template(const char *body, size_t len, bool partial, struct template_spec *ret_spec,
                    struct error *err) attr_must_check;

static inline void template_spec_donep(struct template_spec *spec)
{
	template_spec_done(spec);
}
#define cleanup_template_spec attr_cleanup(template_spec_donep)
