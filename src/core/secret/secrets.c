/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "core/secret/secret_internal.h"
#include "core/tenant/tenant.h"
#include "egress/order.h"
#include "io/loop.h"
#include "tls/authority.h"

#define KEY_TEXT_LEN (TENANT_NAME_MAX + SECRET_NAME_MAX + 2)

void secret_free(struct secret *secret)
{
	if (!secret)
		return;
	list_remove(&secret->node);
	str_list_free(secret->hosts);
	free(secret->header);
	free(secret->format);
	free(secret->env);
	free(secret->placeholder);
	buf_done(&secret->sealed);
	free(secret);
}

/* Return: 0, or -ENAMETOOLONG: nothing has this name. */
static int make_key(char ret_key[KEY_TEXT_LEN], const char *tenant, const char *name)
{
	return str_format(ret_key, KEY_TEXT_LEN, "%s/%s", tenant, name);
}

static struct secret *find_secret(const struct secrets *s, const char *tenant, const char *name)
{
	char key[KEY_TEXT_LEN];

	return make_key(key, tenant, name) < 0 ? NULL : map_get(s->by_key, key);
}

const struct secret *secrets_find(const struct secrets *s, const char *tenant, const char *name)
{
	return find_secret(s, tenant, name);
}

const struct secret *secrets_next(const struct secrets *s, const char *tenant,
                                  const struct secret *after)
{
	const struct secret *secret;
	bool passed = !after;

	LIST_FOREACH (secret, &s->all, struct secret, node) {
		if (passed && str_equal(secret->tenant, tenant))
			return secret;
		passed = passed || secret == after;
	}
	return NULL;
}

struct secrets *secrets_new(const struct secrets_config *config)
{
	struct secrets *s = NEW(struct secrets);

	s->config = *config;
	s->by_key = map_new();
	list_init(&s->all);
	list_init(&s->changes);
	buf_init(&s->authority.cert, AUTHORITY_CERT_MAX);
	buf_init(&s->authority.sealed, AUTHORITY_KEY_MAX + KEYRING_MORE);
	return s;
}

static void take_out(struct secrets *s, struct secret *secret)
{
	struct tenant *t = tenants_find(s->config.tenants, secret->tenant);
	char key[KEY_TEXT_LEN];

	if (make_key(key, secret->tenant, secret->name) == 0)
		(void)map_remove(s->by_key, key);
	list_remove(&secret->node);
	if (!t)
		return;
	tenant_drop_secret(t);
	tenant_release(t);
}

int secrets_add(struct secrets *s, struct secret *secret)
{
	struct tenant *t = tenants_find(s->config.tenants, secret->tenant);
	char key[KEY_TEXT_LEN];

	if (!t || make_key(key, secret->tenant, secret->name) < 0 ||
	    map_put(s->by_key, key, secret) < 0)
		return -EINVAL;
	(void)tenant_take_secret(t, NULL);
	tenant_hold(t);
	list_append(&s->all, &secret->node);
	return 0;
}

/* In its place in the list. */
static void replace(struct secrets *s, struct secret *old, struct secret *new)
{
	char key[KEY_TEXT_LEN];

	if (make_key(key, new->tenant, new->name) < 0 || map_remove(s->by_key, key) != old ||
	    map_put(s->by_key, key, new) < 0)
		abort(); /* both have this key */
	list_append(&old->node, &new->node);
	list_remove(&old->node);
}

/* Changes. */

struct change {
	struct list node; /* secrets.changes, without a store */
	struct secrets *secrets;
	struct secrets_done done;
	struct secret *before; /* owned; NULL: a new one, or a deletion */
	char tenant[TENANT_NAME_MAX + 1], name[SECRET_NAME_MAX + 1];
	const struct secret *made; /* to compare; NULL: a deletion */
};

static void notify(struct secrets *s, const char *tenant, const char *name)
{
	if (s->on_change)
		s->on_change(s->on_change_ctx, tenant, name);
}

/* Unless it was changed again. */
static void undo(struct change *c)
{
	struct secret *now = find_secret(c->secrets, c->tenant, c->name);

	if (!c->made || now != c->made)
		return;
	if (c->before)
		replace(c->secrets, now, TAKE_PTR(c->before));
	else
		take_out(c->secrets, now);
	secret_free(now);
	notify(c->secrets, c->tenant, c->name);
}

static void on_written(void *ctx, const struct error *err)
{
	struct change *c = ctx;

	list_remove(&c->node);
	/* ECANCELED: the daemon ends, and the table may be gone. */
	if (err && err->sys != ECANCELED)
		undo(c);
	c->done.fn(c->done.ctx, err);
	secret_free(c->before);
	free(c);
}

static void on_unkept(void *ctx)
{
	on_written(ctx, NULL);
}

static struct change *begin_change(struct secrets *s, const struct secret *of,
                                   struct secrets_done done)
{
	struct change *c = NEW(struct change);

	c->secrets = s;
	c->done = done;
	list_init(&c->node);
	memcpy(c->tenant, of->tenant, sizeof(c->tenant));
	memcpy(c->name, of->name, sizeof(c->name));
	if (s->config.store)
		return c;
	list_append(&s->changes, &c->node);
	loop_defer(s->config.loop, on_unkept, c);
	return c;
}

void secrets_free(struct secrets *s)
{
	struct secret *secret;
	struct change *c;

	if (!s)
		return;
	LIST_FOREACH (c, &s->changes, struct change, node) {
		loop_cancel(s->config.loop, on_unkept, c);
		on_written(c, NULL);
	}
	LIST_FOREACH (secret, &s->all, struct secret, node) {
		take_out(s, secret);
		secret_free(secret);
	}
	secret_authority_done(s);
	map_free(s->by_key);
	keyring_free(s->config.keyring);
	free(s);
}

void secrets_start(struct secrets *s, struct loop *loop)
{
	s->config.loop = loop;
}

void secrets_watch(struct secrets *s, secrets_change_fn *fn, void *ctx)
{
	s->on_change = fn;
	s->on_change_ctx = ctx;
}

static int seal(struct secrets *s, struct secret *secret, const char *value, size_t len)
{
	const struct keyring_label label = secret_label(secret);

	buf_reset(&secret->sealed);
	(void)!str_copy(secret->key, sizeof(secret->key), keyring_name(s->config.keyring));
	return keyring_seal(s->config.keyring, &label, value, len, &secret->sealed);
}

int secrets_set(struct secrets *s, const char *tenant, const struct secret_spec *spec,
                struct secrets_done done, const struct secret **ret_secret, struct error *err)
{
	struct secret *before = find_secret(s, tenant, spec->name);
	struct tenant *t = tenants_find(s->config.tenants, tenant);
	struct secret *made = secret_make(spec, before, err);
	struct change *c;

	if (!made)
		return -1;
	if (secret_has_tls(made) && secret_authority_need(s, err) < 0) {
		secret_free(made);
		return -1;
	}
	(void)!str_copy(made->tenant, sizeof(made->tenant), tenant); /* of a principal */
	made->updated_ms = clock_real_ms();
	made->created_ms = before ? before->created_ms : made->updated_ms;
	if (seal(s, made, spec->value, spec->value_len) < 0)
		abort(); /* lengths were checked */
	if (!before && (!t || tenant_take_secret(t, err) < 0)) {
		secret_free(made);
		return -1;
	}
	if (!before)
		tenant_drop_secret(t); /* secrets_add counts it */
	c = begin_change(s, made, done);
	if (s->config.store && secret_row_put(s->config.store, made, on_written, c, err) < 0) {
		free(c);
		secret_free(made);
		return -1;
	}
	if (before)
		replace(s, before, made);
	else if (secrets_add(s, made) < 0)
		abort(); /* it was not there */
	c->before = before;
	c->made = made;
	*ret_secret = made;
	notify(s, tenant, made->name);
	return 0;
}

int secrets_delete(struct secrets *s, const char *tenant, const char *name,
                   struct secrets_done done, struct error *err)
{
	struct secret *secret = find_secret(s, tenant, name);
	struct change *c;

	if (!secret)
		return error_set(err, ERR_SECRET_NOT_FOUND, 0, "no secret has this name");
	c = begin_change(s, secret, done);
	if (s->config.store && secret_row_delete(s->config.store, secret, on_written, c, err) < 0) {
		free(c);
		return -1;
	}
	take_out(s, secret);
	secret_free(secret);
	notify(s, tenant, name);
	return 0;
}

/* Use. */

void secrets_wipe(struct buf *b)
{
	if (b->data)
		sodium_memzero(b->data, b->cap);
	buf_done(b);
}

static int unseal(const struct secrets *s, const struct secret *secret, struct buf *to)
{
	const struct keyring_label label = secret_label(secret);

	return keyring_unseal(s->config.keyring, secret->key, &label, &secret->sealed, to);
}

bool secrets_is_usable(const struct secrets *s, const struct secret *secret)
{
	cleanup_secret struct buf value = BUF_INIT(SECRET_VALUE_MAX + 1);

	return unseal(s, secret, &value) == 0;
}

int secrets_reveal(const struct secrets *s, const char *tenant, const char *name, struct buf *to,
                   struct error *err)
{
	const struct secret *secret = secrets_find(s, tenant, name);

	if (!secret)
		return error_set(err, ERR_SECRET_NOT_FOUND, 0, "there is no secret '%.64s'", name);
	if (unseal(s, secret, to) < 0)
		return error_set(
			err, ERR_UNAVAILABLE, 0,
			"secret '%s' cannot be decrypted: its key is missing; set it again",
			secret->name);
	return 0;
}

static int add_text(struct buf *to, const char *text)
{
	return buf_add(to, text, strlen(text) + 1);
}

int secrets_write(const struct secrets *s, const char *tenant, const char *name, struct buf *to)
{
	const struct secret *secret = secrets_find(s, tenant, name);
	cleanup_secret struct buf value = BUF_INIT(SECRET_VALUE_MAX + 1);
	struct egress_secret head = {0};
	size_t start = to->len;
	int r;

	if (!secret || unseal(s, secret, &value) < 0)
		return 0;
	head.mode = secret->mode == SECRET_PLACEHOLDER ? EGRESS_SECRET_PLACEHOLDER
	                                               : EGRESS_SECRET_HEADER;
	head.host_count = (uint32_t)str_list_count(secret->hosts);
	/* All of it or nothing: room is made once. */
	r = buf_reserve(to, SECRET_RECORD_MAX);
	r = r < 0 ? r : buf_add(to, &head, sizeof(head));
	r = r < 0 ? r : add_text(to, secret->name);
	r = r < 0 ? r : add_text(to, secret->header);
	r = r < 0 ? r : add_text(to, secret->format);
	r = r < 0 ? r : add_text(to, secret->placeholder);
	r = r < 0 ? r : buf_add(to, value.data, value.len);
	r = r < 0 ? r : buf_add(to, "", 1);
	for (char *const *host = secret->hosts; *host && r >= 0; host++)
		r = add_text(to, *host);
	if (r >= 0)
		return 1;
	log_err("secret %s of tenant %s does not fit into an order", name, tenant);
	to->len = start;
	return 0;
}

const char *secrets_bundle(const struct secrets *s)
{
	return s->bundle;
}

/* Keys. */

static int seal_anew(struct secrets *s, struct secret *secret, struct error *err)
{
	cleanup_secret struct buf value = BUF_INIT(SECRET_VALUE_MAX + 1);

	if (str_equal(secret->key, keyring_name(s->config.keyring)))
		return 0;
	if (unseal(s, secret, &value) < 0) {
		log_warn("secret %s of tenant %s cannot be decrypted: its key %s is missing",
		         secret->name, secret->tenant, secret->key);
		return 0;
	}
	if (seal(s, secret, value.data, value.len) < 0)
		abort(); /* it fitted before */
	return secret_row_seal_now(s->config.store, secret, err);
}

int secrets_load(struct secrets *s, struct error *err)
{
	struct secret *secret;

	if (s->config.store && (secret_row_load(s, err) < 0 || secret_authority_load(s, err) < 0))
		return -1;
	if (s->config.store)
		LIST_FOREACH (secret, &s->all, struct secret, node)
			if (seal_anew(s, secret, err) < 0)
				return error_wrap(err, "encrypt secrets with the new key");
	return keyring_settle(s->config.keyring, err);
}
