/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what every fuzz target includes. A target is one function that takes any bytes and returns
 * 0. It finds a fault by crashing: through a sanitizer, or through require() where a property
 * beyond "does not crash" must hold.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** require - a property that no input may break. */
#define require(property)                                                                          \
	do {                                                                                       \
		if (!(property)) {                                                                 \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #property);       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/** fuzz_text - the input as a string; longer than @size - 1 bytes, or with a NUL inside, it ends
 * there. */
static inline void fuzz_text(const uint8_t *data, size_t len, char *ret_text, size_t size)
{
	size_t n = 0;

	while (n < len && n + 1 < size && data[n] != '\0') {
		ret_text[n] = (char)data[n];
		n++;
	}
	ret_text[n] = '\0';
}
