/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what of the settings can only be judged on the host that they are for. Asked before anything
 * is started, and by --check-config: nothing here changes anything.
 */

#include "base/attr.h"
#include "base/error.h"

struct config;
struct identity;
struct passwd;
struct policies;

/** preflight_settings - those that contradict each other or the host: addresses, TLS, the user. */
int preflight_settings(const struct config *config, struct error *err) attr_must_check;
/** preflight_programs - engine, agent and runners are where the settings say. */
int preflight_programs(const struct config *config, struct error *err) attr_must_check;
/** preflight_keys - nobody but this host may come in without a key. */
int preflight_keys(const struct config *config, const struct identity *identity,
                   struct error *err) attr_must_check;
/** preflight_listen_failed - tell in @err, of the library, what to do. Return: always -1. */
int preflight_listen_failed(const struct config *config, struct error *err);
/** preflight_user - Return: NULL, with errno where there is more to say than that there is none. */
const struct passwd *preflight_user(const char *user);
/** preflight_policies - those of the settings, and @files (may be NULL) in their place. */
struct policies *preflight_policies(const struct config *config, const char *const *files,
                                    struct error *err) attr_must_check;
/** preflight_check_policies - as preflight_policies, for the answer alone. */
int preflight_check_policies(const struct config *config, const char *const *files,
                             struct error *err) attr_must_check;
