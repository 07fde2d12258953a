/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: checks of settings that depend on the host. Run before anything starts, and by
 * --check-config; no side effects.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

struct config;
struct identity;
struct passwd;
struct policies;

/** preflight_settings - contradictions among settings or with the host. */
int preflight_settings(const struct config *config, struct error *err) attr_must_check;
/** preflight_programs - engine, agent and runners exist. */
int preflight_programs(const struct config *config, struct error *err) attr_must_check;
/** preflight_keys - only this host may connect without a key. */
int preflight_keys(const struct config *config, const struct identity *identity,
                   struct error *err) attr_must_check;
/** preflight_listen_failed - add advice to @err. Return: -1. */
int preflight_listen_failed(const struct config *config, struct error *err);
/** preflight_user - Return: NULL if unknown, with errno if the lookup failed. */
const struct passwd *preflight_user(const char *user);
/**
 * preflight_socket_group - id of the group that the Unix socket gets, or (gid_t)-1 if none is
 * configured.
 */
int preflight_socket_group(const struct config *config, gid_t *ret_gid,
                           struct error *err) attr_must_check;
/** preflight_policies - the configured ones; @files (may be NULL) replace those of the same
 * name. */
struct policies *preflight_policies(const struct config *config, const char *const *files,
                                    struct error *err) attr_must_check;
/** preflight_check_policies - preflight_policies, check only. */
int preflight_check_policies(const struct config *config, const char *const *files,
                             struct error *err) attr_must_check;
