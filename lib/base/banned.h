/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: makes unsafe libc calls compile errors. The build passes it to every translation unit with
 * -include. The headers that declare the names come first, so that the declarations still compile.
 */

#include <alloca.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* Poisoning a macro only warns: alloca is a macro, and so is sprintf with clang and
 * fortification. */
#undef alloca
#undef sprintf
#undef vsprintf

/* No bound on the write, no NUL on truncation, or hidden state between calls. */
#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strncat gets strtok alloca
#pragma GCC poison stpcpy stpncpy gmtime localtime ctime asctime
/* They accept anything as a number: use base/parse.h. */
#pragma GCC poison atoi atol atoll strtol strtoll strtoul strtoull
/* A shell between us and the program; file names that another process may take first. */
#pragma GCC poison system popen mktemp tmpnam tempnam
