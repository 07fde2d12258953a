/* SPDX-License-Identifier: Apache-2.0 */
/* A greeting and a request: a result does not change with more bytes; what is used was there. */
#include <string.h>

#include "egress/socks.h"
#include "fuzz.h"

static int request(const uint8_t *data, size_t size, struct target *t)
{
	enum socks_reply reply = SOCKS_OK;
	struct error err = {0};
	int r = socks_request(data, size, t, &reply, &err);

	require((r < 0) == error_is_set(&err) && (r < 0) == (reply != SOCKS_OK));
	require(r <= (int)size && r <= SOCKS_REQUEST_MAX);
	require(r != 0 || size < SOCKS_REQUEST_MAX);
	return r;
}

static void check_target(const struct target *t)
{
	struct target again;
	struct error err = {0};
	char form[TARGET_TEXT_LEN];

	target_format(t, 0, form);
	require(target_parse(form, strlen(form), 0, &again, &err) == 0);
	require(target_equal(t, &again) && t->is_address == again.is_address);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int used = socks_greeting(data, size), whole;
	struct target t, part;

	require(used <= (int)size && (used != 0 || size < SOCKS_GREETING_MAX));
	for (size_t len = 0; len < size && len < SOCKS_GREETING_MAX; len++) {
		int r = socks_greeting(data, len);

		require(r == 0 || r == used);
	}
	/* The request follows the greeting, or is all there is. */
	if (used > 0) {
		data += used;
		size -= (size_t)used;
	}
	whole = request(data, size, &t);
	for (size_t len = 0; len < size && len < SOCKS_REQUEST_MAX; len++) {
		int r = request(data, len, &part);

		require(r == 0 || r == whole);
		require(r <= 0 || target_equal(&t, &part));
	}
	if (whole > 0)
		check_target(&t);
	return 0;
}
