/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: makes unsafe libc calls compile errors. Given to every translation unit by the build with
 * -include, after the system headers it names, so that their declarations are not affected.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef __cplusplus
#pragma GCC poison strcpy strcat sprintf vsprintf strtok strncpy strncat atoi atol atoll gets
#pragma GCC poison system popen alloca gmtime localtime
#endif
