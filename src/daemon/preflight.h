/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: checks of settings that depend on the host. Run before anything starts, and by
 * --check-config; no side effects.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <sys/types.h>

struct config;
struct policies;

/** preflight_settings - contradictions among settings or with the host. */
int preflight_settings(const struct config *config, struct error *err) attr_must_check;
/** preflight_programs - engine, agent and runners exist. */
int preflight_programs(const struct config *config, struct error *err) attr_must_check;
/** preflight_keys - before anyone can connect: only this host may without a key. */
int preflight_keys(const struct config *config, bool has_keys, struct error *err) attr_must_check;
/** preflight_reach - what the start refuses of certificate, private key and missing API keys. */
int preflight_reach(const struct config *config, struct error *err) attr_must_check;
/** preflight_listen_failed - add advice to @err. Return: -1. */
int preflight_listen_failed(const struct config *config, struct error *err);
/** preflight_ids - the configured user's, else @reserved, which the engine keeps for us. */
int preflight_ids(const struct config *config, uid_t reserved, uid_t *ret_uid, gid_t *ret_gid,
                  struct error *err) attr_must_check;
/** preflight_own_id - our current or future uid. */
uid_t preflight_own_id(const struct config *config, uid_t reserved);
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
