/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sodium.h>
#include <sys/stat.h>

#include "base/str.h"
#include "core/secret/secret_internal.h"
#include "core/tenant/tenant.h"
#include "store_fixture.h"

#define VALUE "sk-do-not-show-0123456789"

static struct keyring *ring_of(struct rig *rig)
{
	struct keyring *k = keyring_new();

	if (keyring_open(k, rig->dir, &rig->f->err) < 0)
		fail_msg("%s", rig->f->err.msg);
	return k;
}

struct table {
	struct store *store; /* owned; NULL: the rig's */
	struct tenants *tenants;
	struct secrets *secrets;
};

static struct table table_of(struct rig *rig, struct store *store)
{
	struct table t = {.tenants = tenants_new(rig->f->config)};

	t.secrets = secrets_new(&(struct secrets_config){.tenants = t.tenants,
	                                                 .store = store,
	                                                 .keyring = ring_of(rig),
	                                                 .loop = rig->f->loop});
	return t;
}

/* What a later daemon has. */
static struct table later(struct rig *rig)
{
	struct store *store;
	struct table t;

	rig_flush(rig);
	assert_int_equal(store_open(rig->dir, &store, &rig->f->err), 0);
	t = table_of(rig, store);
	t.store = store;
	if (secrets_load(t.secrets, &rig->f->err) < 0)
		fail_msg("%s", rig->f->err.msg);
	return t;
}

static void table_done(struct table *t)
{
	secrets_free(t->secrets);
	tenants_free(t->tenants);
	store_close(t->store);
}

static char first_host[] = "API.example.com.", an_address[] = "10.0.0.1", a_star[] = "*.a.test",
	    a_path[] = "a.test/x";
static char *one_host[] = {first_host, NULL};

static struct secret_spec spec_of(const char *name, const char *value)
{
	return (struct secret_spec){
		.name = name, .hosts = one_host, .value = value, .value_len = strlen(value)};
}

static const struct secret *set(struct rig *rig, struct table *t, const struct secret_spec *spec)
{
	const struct secret *secret = NULL;
	int before = rig->callbacks;

	if (secrets_set(t->secrets, TENANT_DEFAULT, spec, (struct secrets_done){rig_on_done, rig},
	                &secret, &rig->f->err) < 0)
		fail_msg("%s", rig->f->err.msg);
	rig_wait(rig, before + 1);
	assert_int_equal(rig->last.code, ERR_NONE);
	return secret;
}

static void assert_value(const struct table *t, const char *name, const char *wanted)
{
	cleanup_secret struct buf value = BUF_INIT(SECRET_VALUE_MAX + 1);
	struct error err = {0};

	if (secrets_reveal(t->secrets, TENANT_DEFAULT, name, &value, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(value.len, strlen(wanted));
	assert_memory_equal(value.data, wanted, value.len);
}

static void a_secret_survives_encrypted(void **state)
{
	struct rig *rig = *state;
	struct table t = table_of(rig, rig->store), after;
	struct secret_spec spec = spec_of("openai", VALUE);
	const struct secret *secret = set(rig, &t, &spec);
	const struct stat zero = {0};
	struct stat st = zero;
	char path[128];

	assert_string_equal(secret->hosts[0], "https://api.example.com:443");
	assert_string_equal(secret->header, "Authorization");
	assert_string_equal(secret->format, "Bearer {value}");
	assert_value(&t, "openai", VALUE);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM secrets WHERE instr(sealed, '" VALUE
	                                 "') OR length(sealed) <> 40 + length('" VALUE "')"),
	                 0);
	assert_int_equal(rig_number(rig, "SELECT count(*) FROM secrets"), 1);
	(void)snprintf(path, sizeof(path), "%s/" KEYRING_FILE, rig->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	after = later(rig);
	assert_value(&after, "openai", VALUE);
	assert_string_equal(secrets_find(after.secrets, TENANT_DEFAULT, "openai")->placeholder,
	                    secret->placeholder);
	assert_int_equal(tenants_find(after.tenants, TENANT_DEFAULT)->secrets, 1);
	table_done(&after);
	table_done(&t);
}

static void a_new_value_keeps_the_rest(void **state)
{
	struct rig *rig = *state;
	struct table t = table_of(rig, rig->store);
	struct secret_spec spec = spec_of("a", VALUE),
			   again = {.name = "a", .value = "another-value"};
	char placeholder[64];
	const struct secret *secret;

	spec.env = "API_KEY";
	spec.header = "X-Key";
	secret = set(rig, &t, &spec);
	(void)!str_copy(placeholder, sizeof(placeholder), secret->placeholder);
	again.value_len = strlen(again.value);
	secret = set(rig, &t, &again);
	assert_value(&t, "a", "another-value");
	assert_string_equal(secret->placeholder, placeholder);
	assert_string_equal(secret->env, "API_KEY");
	assert_string_equal(secret->header, "X-Key");
	assert_string_equal(secret->hosts[0], "https://api.example.com:443");
	assert_int_equal(tenants_find(t.tenants, TENANT_DEFAULT)->secrets, 1);
	assert_null(secrets_next(t.secrets, TENANT_DEFAULT, secret));
	table_done(&t);
}

static void a_deleted_secret_is_gone(void **state)
{
	struct rig *rig = *state;
	struct table t = table_of(rig, rig->store), after;
	struct secret_spec spec = spec_of("a", VALUE);
	struct buf to = BUF_INIT(SECRET_RECORD_MAX);
	struct error err = {0};

	(void)set(rig, &t, &spec);
	assert_int_equal(secrets_write(t.secrets, TENANT_DEFAULT, "a", &to), 1);
	assert_int_equal(secrets_delete(t.secrets, TENANT_DEFAULT, "a",
	                                (struct secrets_done){rig_on_done, rig}, &err),
	                 0);
	secrets_wipe(&to);
	buf_init(&to, SECRET_RECORD_MAX);
	assert_int_equal(secrets_write(t.secrets, TENANT_DEFAULT, "a", &to), 0);
	rig_wait(rig, 2);
	assert_int_equal(secrets_delete(t.secrets, TENANT_DEFAULT, "a",
	                                (struct secrets_done){rig_on_done, rig}, &err),
	                 -1);
	assert_int_equal(err.code, ERR_SECRET_NOT_FOUND);
	after = later(rig);
	assert_null(secrets_find(after.secrets, TENANT_DEFAULT, "a"));
	table_done(&after);
	assert_int_equal(tenants_find(t.tenants, TENANT_DEFAULT)->secrets, 0);
	table_done(&t);
}

static void bad_fields_are_named(void **state)
{
	static char *none[] = {NULL}, *address[] = {an_address, NULL}, *star[] = {a_star, NULL},
		    *path[] = {a_path, NULL};
	static const struct {
		const char *field;
		struct secret_spec spec;
	} cases[] = {
		{"name", {.name = "a/b", .hosts = one_host, .value = VALUE}},
		{"name", {.name = "", .hosts = one_host, .value = VALUE}},
		{"value", {.name = "a", .hosts = one_host, .value = "short"}},
		{"value", {.name = "a", .hosts = one_host, .value = "two\r\nlines: x"}},
		{"value", {.name = "a", .hosts = one_host, .value = " at the edge"}},
		{"hosts", {.name = "a", .value = VALUE}},
		{"hosts", {.name = "a", .hosts = none, .value = VALUE}},
		{"hosts", {.name = "a", .hosts = address, .value = VALUE}},
		{"hosts", {.name = "a", .hosts = star, .value = VALUE}},
		{"hosts", {.name = "a", .hosts = path, .value = VALUE}},
		{"header", {.name = "a", .hosts = one_host, .value = VALUE, .header = "Host"}},
		{"header", {.name = "a", .hosts = one_host, .value = VALUE, .header = "X: y"}},
		{"format", {.name = "a", .hosts = one_host, .value = VALUE, .format = "Bearer"}},
		{"format",
	         {.name = "a", .hosts = one_host, .value = VALUE, .format = "{value}\r\nX: y"}},
		{"env", {.name = "a", .hosts = one_host, .value = VALUE, .env = "LD_PRELOAD"}},
		{"env", {.name = "a", .hosts = one_host, .value = VALUE, .env = "A=B"}},
	};
	struct rig *rig = *state;
	struct table t = table_of(rig, rig->store);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct secret_spec spec = cases[i].spec;
		const struct secret *secret = NULL;
		struct error err = {0};

		spec.value_len = strlen(spec.value);
		assert_int_equal(secrets_set(t.secrets, TENANT_DEFAULT, &spec,
		                             (struct secrets_done){rig_on_done, rig}, &secret,
		                             &err),
		                 -1);
		assert_string_equal(err.field, cases[i].field);
		assert_null(strstr(err.msg, spec.value));
	}
	assert_null(secrets_next(t.secrets, TENANT_DEFAULT, NULL));
	table_done(&t);
}

static size_t keys_in_file(const struct rig *rig)
{
	char path[128], text[1024] = "";
	size_t count = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/" KEYRING_FILE, rig->dir);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(text, sizeof(text), f))
		count++;
	(void)fclose(f);
	return count;
}

static void a_new_key_encrypts_all_anew(void **state)
{
	struct rig *rig = *state;
	struct table t = table_of(rig, rig->store), after;
	struct secret_spec a = spec_of("a", VALUE), b = spec_of("b", VALUE VALUE);
	char old[KEYRING_NAME_LEN], sql[160];

	(void)set(rig, &t, &a);
	(void)set(rig, &t, &b);
	(void)!str_copy(old, sizeof(old), keyring_name(t.secrets->config.keyring));
	assert_int_equal(keyring_rotate(rig->dir, &rig->f->err), 0);
	assert_int_equal(keyring_rotate(rig->dir, &rig->f->err), 0);
	assert_int_equal(keys_in_file(rig), 3);
	after = later(rig);
	assert_int_equal(keys_in_file(rig), 1);
	assert_string_not_equal(keyring_name(after.secrets->config.keyring), old);
	(void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM secrets WHERE key = '%s'",
	               keyring_name(after.secrets->config.keyring));
	assert_int_equal(rig_number(rig, sql), 2);
	assert_value(&after, "a", VALUE);
	assert_value(&after, "b", VALUE VALUE);
	table_done(&after);
	table_done(&t);
}

static void a_row_cannot_pass_for_another(void **state)
{
	struct rig *rig = *state;
	struct table t = table_of(rig, rig->store), after;
	struct secret_spec a = spec_of("a", VALUE), b = spec_of("b", "of-b-0123456789");
	const struct db_statement swap =
		DB_SQL("UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'a')"
	               " WHERE name = ?1",
	               DB_TEXT("b"));
	struct buf to = BUF_INIT(SECRET_RECORD_MAX);
	struct store *store;
	struct error err = {0};

	(void)set(rig, &t, &a);
	(void)set(rig, &t, &b);
	rig_flush(rig);
	assert_int_equal(store_open(rig->dir, &store, &rig->f->err), 0);
	assert_int_equal(db_exec_now(store_db(store), &swap, 1, &rig->f->err), 0);
	store_close(store);
	after = later(rig);
	assert_value(&after, "a", VALUE);
	assert_int_equal(secrets_reveal(after.secrets, TENANT_DEFAULT, "b", &to, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_false(
		secrets_is_usable(after.secrets, secrets_find(after.secrets, TENANT_DEFAULT, "b")));
	buf_done(&to);
	table_done(&after);
	table_done(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(a_secret_survives_encrypted), RIG_TEST(a_new_value_keeps_the_rest),
		RIG_TEST(a_deleted_secret_is_gone),    RIG_TEST(bad_fields_are_named),
		RIG_TEST(a_new_key_encrypts_all_anew), RIG_TEST(a_row_cannot_pass_for_another),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
