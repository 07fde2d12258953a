/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: media types by the ending of a file's name. */

/** media_type_of - application/octet-stream where the ending is not known. Pure. */
const char *media_type_of(const char *path);
