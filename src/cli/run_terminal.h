/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: "millibox run --interactive": our terminal is that of the program. */

#include "base/attr.h"
#include "base/error.h"

struct args;
struct run_input;
struct run_options;

/** run_terminal - Return: exit status, or -1 with *err. */
int run_terminal(const struct run_options *options, const struct run_input *input,
                 const struct args *args, struct error *err);
