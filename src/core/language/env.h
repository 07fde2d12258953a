/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the environment of a program: a fixed base, then the runner's variables, then the caller's.
 * Later values override earlier ones, except for search paths of modules, which are joined, the
 * later first. Pure.
 */

#include "base/error.h"

/** env_check - @env: the caller's NAME=value list, NULL-terminated; may be NULL. */
int env_check(char *const *env, struct error *err) attr_must_check;
/* What a box has besides. */
enum env_extra {
	ENV_PROXY = 1u << 0, /* its network is a proxy on loopback */
	ENV_TOOLS = 1u << 1, /* it may call tools of MCP servers */
};

/**
 * env_make - owned. @runner and @caller may be NULL. @extras: mask of enum env_extra. @secrets: for
 * secrets; NULL: none.
 */
char **env_make(char *const *runner, char *const *caller, unsigned extras,
                char *const *secrets) attr_must_check;
/**
 * env_check_variable - Return: 0, -EINVAL (bad name), -EPERM (makes a loader or interpreter run or
 * read something).
 */
int env_check_variable(const char *variable) attr_must_check;
