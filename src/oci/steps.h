/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what every row of the table does for the engine (engine/runtime.h). */

#include "base/attr.h"
#include "base/error.h"
#include "engine/internal.h"

/* program.c */
int program_open(const struct options *options, struct host *host,
                 struct error *err) attr_must_check;
int program_check(struct host *host, struct error *err) attr_must_check;
/** program_release - the version in a runtime's answer: what follows @says at the start of a line,
 * up to a space. Return: 0, or -ENOENT. Pure. */
int program_release(const char *answer, const char *says,
                    char ret_release[ENGINE_RELEASE_LEN]) attr_must_check;

/* enclose.c */
int enclose_build(struct host *host, struct error *err) attr_must_check;
int step_describe(struct build *b, struct error *err) attr_must_check;
int step_enclose(struct build *b, struct error *err) attr_must_check;

/* launch.c */
int step_launch(struct build *b, struct error *err) attr_must_check;
