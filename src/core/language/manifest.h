/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: reads manifest.yaml of a language. Errors name file, line and key. */

#include "core/language/runners.h"

/** manifest_read - Return: -1 (ERR_CONFIG); @ret_runner may be half filled: manifest_done. */
int manifest_read(const char *path, struct runner *ret_runner, struct error *err) attr_must_check;
void manifest_done(struct runner *runner);
