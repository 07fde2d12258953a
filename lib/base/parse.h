/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: strict text to value: no leading space, unexpected sign, trailing bytes or overflow. Return:
 * 0, -EINVAL or -ERANGE, with nothing written on failure.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int parse_u64(const char *text, uint64_t *ret_value) attr_must_check;
int parse_i64(const char *text, int64_t *ret_value) attr_must_check;
/**
 * parse_size - "512Mi", "1Gi", "512m", "10K", "1048576". K, M, G, T in either case, with or without
 * "i" or "iB", are powers of 1024; fractions are rejected.
 */
int parse_size(const char *text, uint64_t *ret_bytes) attr_must_check;
/** parse_cpu - "1", "0.5", "500m" into millicores. Finer than 1/1000: -EINVAL. */
int parse_cpu(const char *text, uint64_t *ret_millicores) attr_must_check;
/** parse_duration - "30", "1.5", "500ms", "30s", "5m", "1h" into microseconds. */
int parse_duration(const char *text, uint64_t *ret_us) attr_must_check;
/** parse_hex_digit - Return: 0 to 15, or -1. */
static inline int parse_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}
/** parse_bool - true/false, yes/no, on/off, 1/0. */
int parse_bool(const char *text, bool *ret_value) attr_must_check;

/** format_size - the largest of Gi, Mi, Ki that divides @bytes, else bytes. */
void format_size(uint64_t bytes, char *ret_text, size_t size);
/** format_cpu - canonical form: "1", "0.5". */
void format_cpu(uint64_t millicores, char *ret_text, size_t size);
