/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: "millibox run --dir": the program gets a copy of a directory as its workspace. What it
 * changed there can be shown and taken over.
 */

#include "base/attr.h"
#include "base/error.h"

struct args;
struct run_input;
struct run_options;

/** run_dir - Return: exit status, or -1 with *err. */
int run_dir(const struct run_options *options, const struct run_input *input,
            const struct args *args, struct error *err);
