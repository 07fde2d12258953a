/* SPDX-License-Identifier: Apache-2.0 */
/* Any file gets a verdict; the valid part lies within it, and the first fault is named. */
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "chain/chain.h"
#include "fuzz.h"

static size_t count_lines(const uint8_t *data, size_t size)
{
	size_t lines = 0;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup_close int fd = fd_memfd("chain", 0);
	struct chain_verdict v = {0};
	struct chain_head head;

	require(fd >= 0 && fd_write_all(fd, data, size) == 0);
	require(chain_verify_fd(fd, &v) == 0);
	require(v.good_bytes <= size && v.records <= count_lines(data, size));
	require(v.fault != CHAIN_FINE || v.good_bytes == size);
	require(v.fault == CHAIN_FINE || v.bad_line == v.records + 1);
	if (chain_head_parse((const char *)data, size, &head) == 0) {
		char text[CHAIN_HEAD_LEN + 1];

		chain_head_print(&head, text);
		require(memcmp(text, data, size) == 0);
	}
	return 0;
}
