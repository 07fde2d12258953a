/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: makes unsafe libc calls compile errors; passed to every translation unit with -include. The
 * headers that declare the names come first, so that their declarations compile.
 */

#include <alloca.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* Poisoning a macro only warns: alloca is one, and so is sprintf with clang and fortification. */
#undef alloca
#undef sprintf
#undef vsprintf

/* Unbounded write, no NUL on truncation, or hidden state. */
#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strncat gets strtok alloca
#pragma GCC poison stpcpy stpncpy gmtime localtime ctime asctime
/* They accept anything: use base/parse.h. */
#pragma GCC poison atoi atol atoll strtol strtoll strtoul strtoull
/* A shell in between; file names that another process may take first. */
#pragma GCC poison system popen mktemp tmpnam tempnam
