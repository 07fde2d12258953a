/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "guest/filter.h"

static_assert(DRIVER_HASH_LEN == 2 * crypto_hash_sha256_BYTES + 1, "it fits");

static void add_program(crypto_hash_sha256_state *state, const char *file, size_t len,
                        enum filter filter, bool *found)
{
	const struct filter_program *p = &filter_programs[filter];
	size_t bytes = p->len * sizeof(*p->code);

	*found &= memmem(file, len, p->code, bytes) != NULL;
	(void)crypto_hash_sha256_update(state, (const unsigned char *)p->code, bytes);
}

/* The daemon has the same programs; that the agent's file has them is looked up, not assumed. */
void engine_filter_hash(const char *agent_path, char ret_hex[DRIVER_HASH_LEN])
{
	cleanup_close int fd = fd_open(agent_path, O_RDONLY, 0);
	unsigned char hash[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state state;
	struct stat st = {0};
	bool found = true;
	char *file;

	ret_hex[0] = '\0';
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
		return;
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		return;
	(void)crypto_hash_sha256_init(&state);
	add_program(&state, file, (size_t)st.st_size, FILTER_PAYLOAD, &found);
	add_program(&state, file, (size_t)st.st_size, FILTER_AGENT, &found);
	(void)crypto_hash_sha256_final(&state, hash);
	(void)munmap(file, (size_t)st.st_size);
	if (found)
		(void)sodium_bin2hex(ret_hex, DRIVER_HASH_LEN, hash, sizeof(hash));
}
