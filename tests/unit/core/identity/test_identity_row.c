/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/map.h"
#include "core/identity/identity_internal.h"
#include "core/identity/identity_row.h"
#include "store_fixture.h"

/* Rows of tenants and keys; test_identity.c tests their use. */

struct other {
	struct store *store;
	struct tenants *tenants;
	struct identity *identity;
};

/* What a later daemon has. */
static struct other later(struct rig *rig)
{
	struct other o = {0};
	struct identity_config config = {.config = rig->f->config};

	rig_flush(rig);
	assert_int_equal(store_open(rig->dir, &o.store, &rig->f->err), 0);
	config.store = o.store;
	config.tenants = o.tenants = tenants_new(rig->f->config);
	o.identity = identity_new(&config);
	if (identity_row_load(o.store, o.identity, &rig->f->err) < 0)
		fail_msg("%s", rig->f->err.msg);
	return o;
}

static void other_done(struct other *o)
{
	identity_free(o->identity);
	tenants_free(o->tenants);
	store_close(o->store);
}

static struct identity_row_done done_of(struct rig *rig)
{
	return (struct identity_row_done){rig_on_done, rig};
}

static struct tenant make_tenant(void)
{
	struct tenant t = {.name = "acme", .policy = "strict", .created_ms = 5, .updated_ms = 6};

	for (int i = 0; i < QUOTA_COUNT; i++)
		t.quotas[i] = (uint64_t)(i + 1);
	t.quotas[QUOTA_QUEUED] = QUOTA_UNSET;
	t.quotas[QUOTA_BURST] = 0;
	return t;
}

static struct identity_key make_key(void)
{
	struct identity_key key = {.id = "k1",
	                           .tenant = "acme",
	                           .name = "ci \xc3\xa9",
	                           .created_ms = 11,
	                           .expires_ms = 12};

	memset(key.hash, 0xcd, sizeof(key.hash));
	key.principal.scopes = SCOPE_BIT(SCOPE_READ) | SCOPE_BIT(SCOPE_FILES);
	return key;
}

static void every_field_comes_back(void **state)
{
	struct rig *rig = *state;
	struct tenant t = make_tenant();
	struct identity_key key = make_key();
	const struct identity_key *past;
	const struct tenant *tenant;
	struct other o;

	assert_int_equal(key_setup(), 0);
	assert_int_equal(identity_row_put_tenant(rig->store, &t, done_of(rig), &rig->f->err), 0);
	assert_int_equal(identity_row_add_key(rig->store, &key, done_of(rig), &rig->f->err), 0);
	key.revoked_ms = 13;
	assert_int_equal(identity_row_revoke_key(rig->store, &key, done_of(rig), &rig->f->err), 0);
	identity_row_used(rig->store, key.id, 14);
	rig_wait(rig, 3);
	o = later(rig);
	tenant = tenants_find(o.tenants, "acme");
	assert_non_null(tenant);
	assert_string_equal(tenant->policy, "strict");
	assert_int_equal(tenant->created_ms, 5);
	assert_int_equal(tenant->updated_ms, 6);
	assert_memory_equal(tenant->quotas, t.quotas, sizeof(t.quotas));
	past = identity_find_key(o.identity, "k1");
	assert_non_null(past);
	assert_string_equal(past->tenant, "acme");
	assert_string_equal(past->name, key.name);
	assert_memory_equal(past->hash, key.hash, sizeof(key.hash));
	assert_int_equal(past->principal.scopes, key.principal.scopes);
	assert_int_equal(past->created_ms, 11);
	assert_int_equal(past->expires_ms, 12);
	assert_int_equal(past->revoked_ms, 13);
	assert_int_equal(past->last_used_ms, 14);
	other_done(&o);
}

struct leaving {
	struct rig *rig;
	bool left;
};

static void on_left(void *ctx, bool left, const struct error *err)
{
	struct leaving *l = ctx;

	l->left = left;
	rig_on_done(l->rig, err);
}

static void a_tenant_is_deleted_with_its_objects(void **state)
{
	struct rig *rig = *state;
	struct leaving leaving = {rig, true};
	struct store_departure departure = {on_left, &leaving, NULL};
	struct tenant t = make_tenant();
	struct identity_key key = make_key();

	assert_int_equal(identity_row_put_tenant(rig->store, &t, done_of(rig), &rig->f->err), 0);
	assert_int_equal(identity_row_add_key(rig->store, &key, done_of(rig), &rig->f->err), 0);
	rig_sql(rig, "INSERT INTO executions (id, tenant, session_id, session_ms, created_ms,"
	             " completed_ms, status, language, timeout_us, bytes) VALUES ('e', 'acme', 's',"
	             " 1, 1, 1, 'success', 'python', 1, 1)");
	assert_int_equal(identity_row_delete_tenant(rig->store, &t, &departure, &rig->f->err), 0);
	rig_wait(rig, 4);
	assert_false(error_is_set(&rig->last));
	assert_false(leaving.left);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM departed"), 0);
	assert_int_equal(rig_number(rig, "SELECT (SELECT count(*) FROM api_keys) + (SELECT"
	                                 " count(*) FROM executions) + (SELECT count(*) FROM"
	                                 " usage)"),
	                 0);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM tenants WHERE name = 'acme'"), 0);
}

static void a_long_history_is_left_to_the_cleanup(void **state)
{
	struct rig *rig = *state;
	struct leaving leaving = {rig, false};
	struct store_departure departure = {on_left, &leaving, NULL};
	struct tenant_settings settings = {.name = "acme"};
	struct tenant t = make_tenant();
	struct error err = {0};
	struct other o;

	assert_int_equal(identity_row_put_tenant(rig->store, &t, done_of(rig), &rig->f->err), 0);
	rig_sql(rig,
	        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
	        " INSERT INTO executions (id, tenant, session_id, session_ms, created_ms,"
	        " completed_ms, status, language, timeout_us, bytes) SELECT 'e' || i, 'acme', 's',"
	        " 1, 1, 1, 'success', 'python', 1, 1 FROM n");
	assert_int_equal(identity_row_delete_tenant(rig->store, &t, &departure, &rig->f->err), 0);
	rig_wait(rig, 3);
	assert_true(leaving.left);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM executions"), 500 - 64);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM tenants WHERE name = 'acme'"), 0);
	/* A later daemon knows it too, and keeps its name reserved. */
	o = later(rig);
	assert_int_equal(
		identity_create_tenant(o.identity, &settings, (struct identity_done){0}, &err), -1);
	assert_int_equal(err.code, ERR_CONFLICT);
	assert_null(tenants_find(o.tenants, "acme"));
	identity_departed(o.identity, "acme");
	assert_null(map_get(o.identity->departed, "acme"));
	other_done(&o);
}

static void a_refused_scan_is_left_to_the_cleanup(void **state)
{
	struct rig *rig = *state;
	struct leaving leaving = {rig, false};
	struct store_departure departure = {on_left, &leaving, NULL};
	struct tenant t = make_tenant();

	assert_int_equal(identity_row_put_tenant(rig->store, &t, done_of(rig), &rig->f->err), 0);
	rig_wait(rig, 1);
	db_set_queue_max(rig->store->db, 1); /* one job at a time: the scan is refused */
	assert_int_equal(identity_row_delete_tenant(rig->store, &t, &departure, &rig->f->err), 0);
	assert_null(departure.look);
	rig_wait(rig, 2);
	assert_false(error_is_set(&rig->last));
	assert_true(leaving.left);
	/* The name is free after this. */
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM departed WHERE name = 'acme'"), 1);
}

static void a_tenant_that_cannot_be_written_stays(void **state)
{
	struct rig *rig = *state;
	struct leaving leaving = {rig, false};
	struct store_departure departure = {on_left, &leaving, NULL};
	struct tenant t = make_tenant();

	assert_int_equal(identity_row_put_tenant(rig->store, &t, done_of(rig), &rig->f->err), 0);
	rig_break(rig, true);
	assert_int_equal(identity_row_delete_tenant(rig->store, &t, &departure, &rig->f->err), 0);
	rig_wait(rig, 3);
	assert_true(error_is_set(&rig->last));
	rig_break(rig, false);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM tenants WHERE name = 'acme'"), 1);
}

static void a_key_of_an_unknown_tenant_is_refused(void **state)
{
	struct rig *rig = *state;
	struct identity_key key = make_key();

	assert_int_equal(identity_row_add_key(rig->store, &key, done_of(rig), &rig->f->err), 0);
	rig_wait(rig, 1);
	assert_int_equal(rig->last.code, ERR_CONFLICT);
}

static void a_key_created_after_its_tenant_ended_is_refused(void **state)
{
	struct rig *rig = *state;
	struct leaving leaving = {rig, true};
	struct store_departure departure = {on_left, &leaving, NULL};
	struct tenant t = make_tenant();
	struct identity_key key = make_key();

	assert_int_equal(identity_row_put_tenant(rig->store, &t, done_of(rig), &rig->f->err), 0);
	assert_int_equal(identity_row_delete_tenant(rig->store, &t, &departure, &rig->f->err), 0);
	assert_int_equal(identity_row_add_key(rig->store, &key, done_of(rig), &rig->f->err), 0);
	rig_wait(rig, 3);
	assert_int_equal(rig->last.code, ERR_CONFLICT);
	assert_false(leaving.left);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM api_keys"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(every_field_comes_back),
		RIG_TEST(a_tenant_is_deleted_with_its_objects),
		RIG_TEST(a_long_history_is_left_to_the_cleanup),
		RIG_TEST(a_refused_scan_is_left_to_the_cleanup),
		RIG_TEST(a_tenant_that_cannot_be_written_stays),
		RIG_TEST(a_key_of_an_unknown_tenant_is_refused),
		RIG_TEST(a_key_created_after_its_tenant_ended_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
