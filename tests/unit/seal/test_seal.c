/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/alloc.h"
#include "seal/seal.h"
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT "test-1"

static struct seal_key make_key(void)
{
	struct seal_key key;

	assert_true(sodium_init() >= 0);
	(void)crypto_sign_keypair(key.public, key.secret);
	return key;
}

static json_t *sealed(const struct seal_key *key)
{
	return seal_make(key, FORMAT,
	                 json_pack("{s:i, s:{s:s, s:n}, s:[i]}", "b", 1, "a", "text", "x", "none",
	                           "list", 2));
}

static const json_t *check(const json_t *j, const struct seal_key *key)
{
	struct error err = {0};

	return seal_check(j, FORMAT, key->public, &err);
}

static void what_was_signed_verifies(void **state)
{
	const struct seal_key key = make_key(), other = make_key();
	json_t *j = sealed(&key);
	/* The order of members and white space do not matter. */
	char *text = json_dumps(j, JSON_INDENT(3));
	json_t *again = json_loads(text, 0, NULL);
	struct error err = {0};

	(void)state;
	assert_non_null(check(j, &key));
	assert_non_null(check(again, &key));
	assert_null(check(j, &other));
	assert_null(seal_check(j, "test-2", key.public, &err));
	assert_non_null(strstr(err.msg, "test-2"));
	free(text);
	json_decref(again);
	json_decref(j);
}

static void every_change_is_noticed(void **state)
{
	static const char *const changes[] = {
		"{\"payload\":{\"b\":2,\"a\":{\"x\":\"text\",\"none\":null},\"list\":[2]}}",
		"{\"payload\":{\"b\":1.0,\"a\":{\"x\":\"text\",\"none\":null},\"list\":[2]}}",
		"{\"payload\":{\"b\":1,\"a\":{\"x\":\"text\"},\"list\":[2]}}",
		"{\"payload\":{\"b\":1,\"a\":{\"x\":\"te\\nxt\",\"none\":null},\"list\":[2]}}",
		"{\"payload\":[]}",
		"{\"payload\":null}",
		"{\"format\":\"test-2\"}",
		"{\"format\":7}",
		"{\"signature\":\"\"}",
		"{\"signature\":7}",
		"{\"signature\":\"AAAA\"}",
		"{\"key_id\":\"0000000000000000\"}",
		"{\"key_id\":null}",
		"{\"more\":1}",
	};
	const struct seal_key key = make_key();

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		json_t *j = sealed(&key), *change = json_loads(changes[i], 0, NULL);

		assert_non_null(change);
		assert_non_null(check(j, &key));
		assert_int_equal(json_object_update(j, change), 0);
		if (check(j, &key))
			fail_msg("accepted %s", changes[i]);
		json_decref(change);
		json_decref(j);
	}
	assert_null(check(NULL, &key));
}

/* A signature of all zeros under a key of small order must not verify everything. */
static void weak_keys_are_refused(void **state)
{
	const struct seal_key key = make_key();
	unsigned char weak[SEAL_PUBLIC_LEN] = {1};
	char id[SEAL_ID_LEN + 1];
	struct error err = {0};
	json_t *j = sealed(&key);
	char zeros[89];

	(void)state;
	seal_key_id(weak, id);
	(void)sodium_bin2base64(zeros, sizeof(zeros), (unsigned char[64]){1}, 64,
	                        sodium_base64_VARIANT_ORIGINAL);
	(void)json_object_set_new(j, "key_id", json_string(id));
	(void)json_object_set_new(j, "signature", json_string(zeros));
	assert_null(seal_check(j, FORMAT, weak, &err));
	json_decref(j);
}

static void a_key_is_made_once(void **state)
{
	char dir[] = "/tmp/seal.XXXXXX", path[64];
	struct seal_key key, again;
	struct error err = {0};
	struct stat st;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/k", dir);
	assert_int_equal(seal_key_load(dir, "k", &key, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(seal_key_load(dir, "k", &again, &err), 0);
	assert_memory_equal(&key, &again, sizeof(key));
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(seal_key_load(dir, "k", &again, &err), -1);
	assert_non_null(strstr(err.msg, "0600"));
	assert_int_equal(chmod(path, 0600), 0);
	f = fopen(path, "w");
	assert_non_null(f);
	(void)fputs("short\n", f);
	(void)fclose(f);
	err = (struct error){0};
	assert_int_equal(seal_key_load(dir, "k", &again, &err), -1);
	assert_non_null(strstr(err.msg, "damaged"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_signed_verifies),
		cmocka_unit_test(every_change_is_noticed),
		cmocka_unit_test(weak_keys_are_refused),
		cmocka_unit_test(a_key_is_made_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
