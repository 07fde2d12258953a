/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the dialects, in the order in which routes are matched. */

struct dialect;

extern const struct dialect *const dialects[]; /* NULL-terminated */
