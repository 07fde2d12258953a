/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: SHA-256 (FIPS 180-4), because the agent links no library. */

#include <stddef.h>
#include <stdint.h>

#define SHA256_LEN 32

struct sha256 {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t block[64];
};

void sha256_init(struct sha256 *h);
void sha256_add(struct sha256 *h, const void *data, size_t len);
/** sha256_end - finish; @h must not be used again. */
void sha256_end(struct sha256 *h, uint8_t ret_digest[SHA256_LEN]);
