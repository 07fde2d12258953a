/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/secret_setup.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/config/config.h"
#include "core/identity/key.h"
#include "core/secret/keyring.h"
#include "core/secret/secret.h"
#include "core/session/session.h"
#include "daemon/gateway_setup.h"
#include "io/timer.h"
#include "service/services.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Changes within this time are one restart of the servers, which all tenants may use. */
#define RENEWAL_US USEC_PER_SEC
#define RETRY_US   (20 * USEC_PER_MS) /* the starter has not received everything */

int secret_setup_read_key(struct secret_setup *s, const struct config *config, struct error *err)
{
	const char *credentials = getenv("CREDENTIALS_DIRECTORY"), *path = NULL;
	cleanup_free char *credential =
		xasprintf("%s/" KEYRING_FILE, credentials ? credentials : "");

	if (config->secrets_key_file[0])
		path = config->secrets_key_file;
	else if (credentials && access(credential, F_OK) == 0)
		path = credential;
	if (key_setup() < 0)
		return error_set(err, ERR_SYSTEM, 0, "set up libsodium");
	s->keyring = keyring_new();
	return path ? keyring_read(s->keyring, path, err) : 0;
}

int secret_setup_load(struct secret_setup *s, const struct config *config, struct tenants *tenants,
                      struct store *store, struct error *err)
{
	if (keyring_count(s->keyring) == 0 && config->store_volatile)
		keyring_make(s->keyring);
	else if (keyring_count(s->keyring) == 0 &&
	         keyring_open(s->keyring, config->state_dir, err) < 0)
		return -1;
	s->secrets = secrets_new(&(struct secrets_config){.tenants = tenants,
	                                                  .store = store,
	                                                  .keyring = TAKE_PTR(s->keyring),
	                                                  .ca_file = config->egress_ca_file});
	return secrets_load(s->secrets, err);
}

static int write_secret(const void *ctx, const char *tenant, const char *name, struct buf *to)
{
	return secrets_write(ctx, tenant, name, to);
}

static int write_authority(const void *ctx, struct buf *to)
{
	return secrets_write_authority(ctx, to);
}

/* Variables and headers of the servers are new: they start again. */
static void on_renewal(void *ctx)
{
	struct secret_setup *s = ctx;
	int sock = services_gateway_starter(s->services);
	int r = sock < 0 ? 0 : gateway_setup_send(sock, s->config, s->secrets, &s->renewal_step);

	if (r == -EAGAIN) {
		timer_start(s->renewal, RETRY_US);
		return;
	}
	s->is_renewal_due = false;
	if (r < 0)
		log_err("MCP servers do not have a changed secret until a restart: %s",
		        strerror(-r));
}

static void renew_servers(struct secret_setup *s)
{
	s->renewal_step = 0;
	if (!s->is_renewal_due)
		timer_start(s->renewal, RENEWAL_US);
	s->is_renewal_due = true;
}

static void on_change(void *ctx, const char *tenant, const char *name)
{
	struct secret_setup *s = ctx;

	session_service_secrets_changed(s->sessions, tenant);
	services_secrets_changed(s->services, tenant);
	if (gateway_setup_uses(s->config, tenant, name))
		renew_servers(s);
}

void secret_setup_attach(struct secret_setup *s, const struct config *config,
                         const struct services *services, struct session_service *sessions,
                         struct loop *loop)
{
	s->renewal = timer_new(loop, on_renewal, s);
	s->config = config;
	s->services = services;
	s->sessions = sessions;
	services_set_secrets(services,
	                     &(struct egress_source){write_secret, write_authority, s->secrets});
	secrets_watch(s->secrets, on_change, s);
}

int secret_setup_rotate(const struct config *config, struct error *err)
{
	if (config->secrets_key_file[0])
		return error_set(err, ERR_CONFIG, 0,
		                 "the key is in %s: put a new one in a line before it, and restart "
		                 "the daemon",
		                 config->secrets_key_file);
	if (key_setup() < 0)
		return error_set(err, ERR_SYSTEM, 0, "set up libsodium");
	return keyring_rotate(config->state_dir, err);
}

void secret_setup_done(struct secret_setup *s)
{
	timer_free(s->renewal);
	secrets_free(s->secrets);
	keyring_free(s->keyring);
}
