/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: where the key of secrets comes from, and how their values get to the proxy. */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct config;
struct keyring;
struct loop;
struct secrets;
struct services;
struct session_service;
struct store;
struct tenants;
struct timer;

struct secret_setup {
	struct keyring *keyring; /* until the secrets have it */
	struct secrets *secrets;
	const struct config *config; /* borrowed, as the following */
	const struct services *services;
	struct session_service *sessions;
	struct timer *renewal; /* owned: the MCP servers get changed secrets */
	bool is_renewal_due;
	size_t renewal_step; /* see gateway_setup_send */
};

/** secret_setup_read_key - the operator's, if there is one; with the rights of the user who starts
 * the daemon. */
int secret_setup_read_key(struct secret_setup *s, const struct config *config,
                          struct error *err) attr_must_check;
/** secret_setup_load - with the daemon's own rights, before the filter. */
int secret_setup_load(struct secret_setup *s, const struct config *config, struct tenants *tenants,
                      struct store *store, struct error *err) attr_must_check;
/** secret_setup_attach - boxes get them, and every change. */
void secret_setup_attach(struct secret_setup *s, const struct config *config,
                         const struct services *services, struct session_service *sessions,
                         struct loop *loop);
/** secret_setup_rotate - a new key in the state directory; the next daemon uses it. */
int secret_setup_rotate(const struct config *config, struct error *err) attr_must_check;
void secret_setup_done(struct secret_setup *s);
