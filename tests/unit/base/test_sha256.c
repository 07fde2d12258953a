/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/sha256.h"
#include <stdio.h>
#include <string.h>

static void check(const char *data, size_t len, size_t step, const char *wanted)
{
	uint8_t digest[SHA256_LEN];
	char hex[2 * SHA256_LEN + 1];
	struct sha256 h;

	sha256_init(&h);
	for (size_t at = 0; at < len; at += step)
		sha256_add(&h, data + at, len - at < step ? len - at : step);
	sha256_end(&h, digest);
	for (size_t i = 0; i < SHA256_LEN; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, wanted);
}

/* The examples of FIPS 180-4 and its companions. */
static void known_digests(void **state)
{
	static const char two[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	static char million[1000000];

	(void)state;
	memset(million, 'a', sizeof(million));
	check("", 0, 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	check("abc", 3, 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	for (size_t step = 1; step < 70; step++)
		check(two, strlen(two), step,
		      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	check(million, sizeof(million), 4097,
	      "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(known_digests)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
