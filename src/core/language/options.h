/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the options of a request ("std=c++20"), described by the manifest of its language: which
 * there are, which values they accept, which words they add to a command. Pure.
 */

#include "core/language/runners.h"

#define OPTIONS_MAX       32
#define OPTIONS_VALUE_MAX 1024
#define OPTIONS_WORDS_MAX 64

/** options_check - @given: NAME=value, NULL-terminated; may be NULL. Errors name "options.NAME". */
int options_check(const struct runner *r, char *const *given, struct error *err) attr_must_check;
/** options_check_version - whether @installed ("1.19.8"; NULL: not known) has the versions that
 * @given asks for. Errors name "options.NAME" and @installed. */
int options_check_version(const struct runner *r, char *const *given, const char *installed,
                          struct error *err) attr_must_check;
/** options_value - the given value or the default; NULL: none. */
const char *options_value(const struct runner_option *option, char *const *given);
/** options_words - what stands for "{options}" in @r's compile_command or command. Owned. */
char **options_words(const struct runner *r, char *const *given, bool compile) attr_must_check;
/** options_of_type - value of the first option of @type that has one; NULL: none. */
const char *options_of_type(const struct runner *r, char *const *given,
                            enum runner_option_type type);
/** options_compile - whether the request is compiled, or checked, before it runs. */
bool options_compile(const struct runner *r, char *const *given);
/** options_prefix - lines that options put in front of the code; NULL: none. Owned. */
char *options_prefix(const struct runner *r, char *const *given) attr_must_check;
