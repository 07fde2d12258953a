/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/identity/identity.h"
#include "core/store/store_internal.h"
#include "io/loop.h"

/* Identities with a real store in a directory of their own. */

#define OWNER   1234
#define SERVICE 1236

struct fixture {
	char dir[64];
	struct loop *loop;
	struct config *config;
	struct store *store;
	struct tenants *tenants;
	struct identity *identity;
	struct error err;
	int done;
	struct error result;
	int policies;  /* reports of changed policies */
	char seen[64]; /* alice's at the last report */
};

static void on_done(void *ctx, const struct error *err)
{
	struct fixture *f = ctx;

	f->done++;
	f->result = err ? *err : (struct error){0};
}

static struct identity_done done_of(struct fixture *f)
{
	return (struct identity_done){on_done, f};
}

/* Wait for one answer of the store. */
static void settle(struct fixture *f)
{
	int before = f->done;

	while (f->done == before)
		loop_run_once(f->loop, true);
}

static void open_all(struct fixture *f)
{
	struct identity_config config = {
		.config = f->config, .owner_uid = OWNER, .daemon_uid = SERVICE};

	f->loop = loop_new();
	assert_int_equal(store_open(f->dir, &f->store, &f->err), 0);
	config.store = f->store;
	config.tenants = f->tenants = tenants_new(f->config);
	f->identity = identity_new(&config);
	assert_int_equal(identity_load(f->identity, &f->err), 0);
	assert_int_equal(store_start(f->store, f->loop, NULL, &f->err), 0);
	identity_start(f->identity, f->loop, NULL);
}

static void close_all(struct fixture *f)
{
	identity_free(f->identity);
	tenants_free(f->tenants);
	store_close(f->store);
	loop_free(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = NEW(struct fixture);

	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/millibox-identity-XXXXXX");
	if (!mkdtemp(f->dir) || key_setup() < 0)
		return -1;
	f->config = config_load(NULL, NULL, 0, &f->err);
	open_all(f);
	*state = f;
	return 0;
}

static void drop_file(const char *dir, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);

	(void)unlink(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close_all(f);
	drop_file(f->dir, STORE_FILE);
	drop_file(f->dir, STORE_FILE "-wal");
	drop_file(f->dir, STORE_FILE "-shm");
	drop_file(f->dir, STORE_FILE "-clean");
	(void)rmdir(f->dir);
	config_free(f->config);
	free(f);
	return 0;
}

static const struct principal *ask(struct fixture *f, const struct identity_request *request)
{
	struct identity_request r = *request;

	error_clear(&f->err);
	if (!r.peer)
		r.peer = "192.0.2.1";
	if (!r.now_us)
		r.now_us = clock_us();
	return identity_authenticate(f->identity, &r, &f->err);
}

static struct key make(struct fixture *f, const char *tenant, uint64_t expires_ms)
{
	const struct identity_key_request request = {
		.tenant = tenant, .name = "n", .scopes = SCOPES_USER, .expires_ms = expires_ms};
	struct key key;

	error_clear(&f->err);
	assert_int_equal(identity_create_key(f->identity, &request, done_of(f), &key, &f->err), 0);
	settle(f);
	assert_int_equal(f->result.code, ERR_NONE);
	return key;
}

static const struct principal *ask_with(struct fixture *f, const struct key *key)
{
	char text[KEY_TEXT_LEN + 1];

	key_format(key, text);
	return ask(f, &(struct identity_request){.api_key = text});
}

static void without_keys_all_but_the_owner_lack_admin(void **state)
{
	struct fixture *f = *state;
	const struct principal *p =
		ask(f, &(struct identity_request){.authorization = "Bearer x", .is_unix = true});

	assert_non_null(p);
	assert_string_equal(p->tenant, TENANT_DEFAULT);
	assert_false(scope_allows(p->scopes, SCOPE_ADMIN));
	p = ask(f, &(struct identity_request){.is_unix = true, .has_uid = true, .uid = OWNER});
	assert_true(scope_allows(p->scopes, SCOPE_ADMIN));
	p = ask(f, &(struct identity_request){.is_unix = true, .has_uid = true, .uid = OWNER + 1});
	assert_false(scope_allows(p->scopes, SCOPE_ADMIN));
}

static void without_keys_tcp_serves_root_and_the_daemons_users(void **state)
{
	static const unsigned served[] = {0, OWNER, SERVICE};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(served); i++) {
		const struct principal *p =
			ask(f, &(struct identity_request){.has_uid = true, .uid = served[i]});

		assert_non_null(p);
		assert_string_equal(p->tenant, TENANT_DEFAULT);
		assert_false(scope_allows(p->scopes, SCOPE_ADMIN));
	}
	assert_null(ask(f, &(struct identity_request){.has_uid = true, .uid = OWNER + 1}));
	assert_int_equal(f->err.code, ERR_UNAUTHENTICATED);
	assert_non_null(strstr(f->err.msg, "POST /api/v1/keys"));
	/* The kernel does not know the peer: whatever is in uid does not count. */
	assert_null(ask(f, &(struct identity_request){.uid = 0, .authorization = "Bearer x"}));
	assert_int_equal(f->err.code, ERR_UNAUTHENTICATED);
}

static void a_key_authenticates_its_tenant(void **state)
{
	struct fixture *f = *state;
	struct key key = make(f, TENANT_DEFAULT, 0), wrong = key;
	const struct principal *p = ask_with(f, &key);

	assert_non_null(p);
	assert_string_equal(p->key_id, key.id);
	assert_null(ask(f, &(struct identity_request){0}));
	assert_int_equal(f->err.code, ERR_UNAUTHENTICATED);
	wrong.secret[0] = wrong.secret[0] == 'a' ? 'b' : 'a';
	assert_null(ask_with(f, &wrong));
	assert_int_equal(f->err.code, ERR_UNAUTHENTICATED);
	/* The socket is trusted only without a key. */
	assert_non_null(
		ask(f, &(struct identity_request){.is_unix = true, .has_uid = true, .uid = 0}));
	/* Over TCP root needs a key as anyone. */
	assert_null(ask(f, &(struct identity_request){.has_uid = true, .uid = 0}));
	assert_null(
		ask(f, &(struct identity_request){
			       .is_unix = true, .has_uid = true, .uid = 0, .api_key = "nonsense"}));
	assert_null(
		ask(f, &(struct identity_request){.is_unix = true, .has_uid = true, .uid = 77}));
}

static void revoked_and_expired_keys_are_unknown(void **state)
{
	struct fixture *f = *state;
	struct key key = make(f, TENANT_DEFAULT, 0);
	struct key brief = make(f, TENANT_DEFAULT, clock_real_ms() + 1000);

	assert_non_null(ask_with(f, &key));
	assert_int_equal(identity_revoke_key(f->identity, identity_find_key(f->identity, key.id),
	                                     done_of(f), &f->err),
	                 0);
	assert_null(ask_with(f, &key)); /* even before it is on disk */
	settle(f);
	while (clock_real_ms() < UINT64_MAX && ask_with(f, &brief))
		;
	assert_int_equal(f->err.code, ERR_UNAUTHENTICATED);
	assert_true(identity_has_keys(f->identity));
	assert_null(ask(f, &(struct identity_request){0})); /* authentication stays on */
}

static void everything_is_restored_after_a_restart(void **state)
{
	struct fixture *f = *state;
	struct tenant_settings alice = {.name = "alice", .policy = "strict"};
	struct key key, dead;
	struct identity_key_info info;

	for (int i = 0; i < QUOTA_COUNT; i++)
		alice.quotas[i] = QUOTA_UNSET;
	alice.quotas[QUOTA_SESSIONS] = 0;
	alice.quotas[QUOTA_MEMORY] = 5 << 20;
	assert_int_equal(identity_create_tenant(f->identity, &alice, done_of(f), &f->err), 0);
	settle(f);
	key = make(f, "alice", clock_real_ms() + 1000000);
	dead = make(f, "alice", 0);
	assert_int_equal(identity_revoke_key(f->identity, identity_find_key(f->identity, dead.id),
	                                     done_of(f), &f->err),
	                 0);
	settle(f);
	close_all(f);
	open_all(f);
	assert_int_equal(identity_key_count(f->identity), 2);
	assert_string_equal(ask_with(f, &key)->tenant, "alice");
	assert_null(ask_with(f, &dead));
	identity_key_info(identity_key_at(f->identity, 0), &info);
	assert_string_equal(info.id, key.id);
	assert_string_equal(info.name, "n");
	assert_int_equal(info.scopes, SCOPES_USER);
	assert_true(info.active && info.expires_ms > 0);
	assert_string_equal(tenants_find(f->tenants, "alice")->policy, "strict");
	assert_int_equal(tenants_find(f->tenants, "alice")->quotas[QUOTA_SESSIONS], 0);
	assert_int_equal(tenants_find(f->tenants, "alice")->quotas[QUOTA_MEMORY], 5 << 20);
	assert_true(tenants_find(f->tenants, "alice")->quotas[QUOTA_QUEUED] == QUOTA_UNSET);
}

static void a_tenant_with_a_key_is_not_deleted(void **state)
{
	struct fixture *f = *state;
	struct tenant_settings alice = {.name = "alice"};
	struct key key;

	assert_int_equal(identity_create_tenant(f->identity, &alice, done_of(f), &f->err), 0);
	settle(f);
	key = make(f, "alice", 0);
	assert_int_equal(identity_delete_tenant(f->identity, tenants_find(f->tenants, "alice"),
	                                        done_of(f), &f->err),
	                 -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	error_clear(&f->err);
	assert_int_equal(identity_revoke_key(f->identity, identity_find_key(f->identity, key.id),
	                                     done_of(f), &f->err),
	                 0);
	settle(f);
	assert_int_equal(identity_delete_tenant(f->identity, tenants_find(f->tenants, "alice"),
	                                        done_of(f), &f->err),
	                 0);
	settle(f);
	assert_int_equal(f->result.code, ERR_NONE);
	assert_null(tenants_find(f->tenants, "alice"));
	assert_int_equal(identity_key_count(f->identity), 0);
	/* Its keys, the last ones, were deleted with it: authentication stays on. */
	assert_null(ask(f, &(struct identity_request){0}));
	assert_non_null(
		ask(f, &(struct identity_request){.is_unix = true, .has_uid = true, .uid = OWNER}));
}

static void on_policy(void *ctx)
{
	struct fixture *f = ctx;

	f->policies++;
	assert_int_equal(
		str_copy(f->seen, sizeof(f->seen), tenants_find(f->tenants, "alice")->policy), 0);
}

/* Names of policies that begin with "bad" cannot be written. */
static void add_alice(struct fixture *f)
{
	const struct db_statement trigger = {
		.sql = "CREATE TRIGGER refuse BEFORE UPDATE ON tenants WHEN NEW.policy LIKE 'bad%' "
		       "BEGIN SELECT RAISE(ABORT, 'refused by the test'); END"};
	const struct tenant_settings alice = {.name = "alice", .policy = "first"};

	assert_int_equal(identity_create_tenant(f->identity, &alice, done_of(f), &f->err), 0);
	settle(f);
	assert_non_null(db_write(f->store->db, &trigger, 1, on_done, f, &f->err));
	settle(f);
	assert_int_equal(f->result.code, ERR_NONE);
	identity_watch_policies(f->identity, on_policy, f);
}

static void set_policy(struct fixture *f, const char *policy)
{
	assert_int_equal(identity_set_tenant(f->identity, tenants_find(f->tenants, "alice"),
	                                     &(struct tenant_settings){.policy = policy},
	                                     done_of(f), &f->err),
	                 0);
	assert_string_equal(tenants_find(f->tenants, "alice")->policy, policy);
}

/* What a tenant got from a policy that was not written must be taken from it. */
static void an_undone_policy_is_reported(void **state)
{
	struct fixture *f = *state;

	add_alice(f);
	set_policy(f, "bad");
	settle(f);
	assert_int_not_equal(f->result.code, ERR_NONE);
	assert_string_equal(tenants_find(f->tenants, "alice")->policy, "first");
	assert_int_equal(f->policies, 1);
	assert_string_equal(f->seen, "first");
	set_policy(f, "first");
	settle(f);
	assert_int_equal(f->policies, 1); /* the same */
	set_policy(f, "second");
	settle(f);
	assert_int_equal(f->policies, 2);
	assert_string_equal(f->seen, "second");
}

/* Memory has what the file has, and is reported once: nothing is taken for a policy that may still
 * fail. */
static void pending_policies_are_reported_when_all_are_written(void **state)
{
	static const struct {
		const char *set[3];
		const char *result;
	} rows[] = {
		{{"second", "third"}, "third"},      {{"second", "first"}, "first"},
		{{"bad", "third"}, "third"},         {{"second", "bad"}, "second"},
		{{"bad", "bad2"}, "first"},          {{"bad", "bad2", "bad3"}, "first"},
		{{"bad", "third", "bad3"}, "third"},
	};
	struct fixture *f = *state;

	add_alice(f);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int end = f->done;

		for (size_t j = 0; j < ARRAY_SIZE(rows[i].set) && rows[i].set[j]; j++, end++)
			set_policy(f, rows[i].set[j]);
		f->policies = 0;
		while (f->done < end) {
			assert_int_equal(f->policies, 0);
			loop_run_once(f->loop, true);
		}
		assert_int_equal(f->policies, 1);
		assert_string_equal(f->seen, rows[i].result);
		assert_string_equal(tenants_find(f->tenants, "alice")->policy, rows[i].result);
		close_all(f);
		open_all(f);
		assert_string_equal(tenants_find(f->tenants, "alice")->policy, rows[i].result);
		identity_watch_policies(f->identity, on_policy, f);
		set_policy(f, "first");
		settle(f);
	}
}

static void failures_of_a_peer_are_slowed_down(void **state)
{
	struct fixture *f = *state;
	struct key key = make(f, TENANT_DEFAULT, 0);
	struct identity_request bad = {.api_key = "nonsense", .now_us = 100 * USEC_PER_SEC};
	char good[KEY_TEXT_LEN + 1];
	int busy = 0;

	key_format(&key, good);
	for (int i = 0; i < 30; i++) {
		assert_null(ask(f, &bad));
		busy += f->err.code == ERR_BUSY;
	}
	assert_int_equal(busy, 10);
	/* Another peer is not affected; a valid key is accepted. */
	bad.peer = "192.0.2.2";
	assert_null(ask(f, &bad));
	assert_int_equal(f->err.code, ERR_UNAUTHENTICATED);
	assert_non_null(
		ask(f, &(struct identity_request){.api_key = good, .now_us = 100 * USEC_PER_SEC}));
	bad.peer = NULL;
	bad.now_us += 2 * USEC_PER_SEC;
	assert_null(ask(f, &bad));
	assert_int_equal(f->err.code, ERR_UNAUTHENTICATED);
}

static void many_peers_do_not_take_memory_without_end(void **state)
{
	struct fixture *f = *state;
	char peer[32];

	(void)make(f, TENANT_DEFAULT, 0);
	for (int i = 0; i < 20000; i++) {
		(void)snprintf(peer, sizeof(peer), "2001:db8::%x", (unsigned)i);
		assert_null(ask(f, &(struct identity_request){.api_key = "nonsense",
		                                              .peer = peer,
		                                              .now_us = 50 * USEC_PER_SEC}));
	}
	assert_int_equal(f->err.code, ERR_BUSY); /* further peers share one bucket */
}

static void pending_changes_are_answered_at_the_end(void **state)
{
	struct fixture *f = *state;
	const struct identity_key_request request = {.tenant = TENANT_DEFAULT, .scopes = 1};
	struct key key;

	assert_int_equal(identity_create_key(f->identity, &request, done_of(f), &key, &f->err), 0);
	identity_free(f->identity);
	f->identity = NULL;
	assert_int_equal(f->done, 1);
	assert_int_equal(f->result.code, ERR_UNAVAILABLE);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_keys_all_but_the_owner_lack_admin),
		TEST(without_keys_tcp_serves_root_and_the_daemons_users),
		TEST(a_key_authenticates_its_tenant),
		TEST(revoked_and_expired_keys_are_unknown),
		TEST(everything_is_restored_after_a_restart),
		TEST(a_tenant_with_a_key_is_not_deleted),
		TEST(an_undone_policy_is_reported),
		TEST(pending_policies_are_reported_when_all_are_written),
		TEST(failures_of_a_peer_are_slowed_down),
		TEST(many_peers_do_not_take_memory_without_end),
		TEST(pending_changes_are_answered_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
