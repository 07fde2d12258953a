/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: media types by file suffix. */

/** media_type_of - application/octet-stream by default. Pure. */
const char *media_type_of(const char *path);
