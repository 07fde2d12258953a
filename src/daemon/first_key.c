/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/first_key.h"

#include "base/fd.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/identity/identity.h"
#include "core/store/store.h"
#include "daemon/home.h"
#include <stdio.h>
#include <string.h>

/* Freed in this order. */
struct first_key {
	struct identity *identity;
	struct tenants *tenants;
	struct store *store;
	int lock;
};

static void first_key_done(struct first_key *f)
{
	identity_free(f->identity);
	tenants_free(f->tenants);
	store_close(f->store);
	fd_close(f->lock);
}

static int create_key(const struct config *config, struct first_key *f, struct key *ret_key,
                      struct error *err)
{
	const struct identity_key_request request = {
		.tenant = TENANT_DEFAULT,
		.name = "milliboxd --create-key",
		.scopes = SCOPES_ALL,
	};
	struct identity_config parts = {.config = config};

	if (key_setup() < 0)
		return error_set(err, ERR_SYSTEM, 0, "set up libsodium");
	if (home_open_state(config->state_dir, &f->lock, err) < 0)
		return error_wrap(err, "if a daemon is running, use 'millibox key create'");
	if (store_open(config->state_dir, &f->store, err) < 0)
		return -1;
	parts.store = f->store;
	parts.tenants = f->tenants = tenants_new(config);
	f->identity = identity_new(&parts);
	if (identity_load(f->identity, err) < 0)
		return -1;
	return identity_create_key_now(f->identity, &request, ret_key, err);
}

enum daemon_exit first_key_create(const struct config *config)
{
	attr_cleanup(first_key_done) struct first_key f = {.lock = -1};
	cleanup_key struct key key = {0};
	char text[KEY_TEXT_LEN + 1];
	struct error err = {0};

	if (create_key(config, &f, &key, &err) < 0) {
		log_error("create a key", &err);
		return DAEMON_BAD_PLACE;
	}
	key_format(&key, text);
	(void)printf("%s\n", text);
	explicit_bzero(text, sizeof(text));
	return fflush(stdout) == 0 ? DAEMON_STOPPED : DAEMON_BAD_PLACE;
}
