/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: makes unsafe libc calls compile errors. Given to every translation unit by the build with
 * -include. The headers that declare the names come first, so that the declarations themselves are
 * not affected; their include guards keep them from being read again later.
 */

#include <alloca.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* Poisoning a macro only warns: alloca is one; so is sprintf with clang and fortification. */
#undef alloca
#undef sprintf
#undef vsprintf

/* They write as far as the data says, or leave out the NUL, or keep state between calls. */
#pragma GCC poison strcpy strcat sprintf vsprintf strncpy strncat gets strtok alloca
#pragma GCC poison stpcpy stpncpy gmtime localtime ctime asctime
/* They take anything for a number: base/parse.h does not. */
#pragma GCC poison atoi atol atoll strtol strtoll strtoul strtoull
/* A shell between us and the program; names that somebody else may take first. */
#pragma GCC poison system popen mktemp tmpnam tempnam
