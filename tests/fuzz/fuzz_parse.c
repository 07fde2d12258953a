/* SPDX-License-Identifier: Apache-2.0 */
/* Text to value: what a parser accepts, the canonical form of the value gives back. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "base/parse.h"
#include "base/str.h"
#include "fuzz.h"

#define UNTOUCHED 0x5AA55AA55AA55AA5ULL

/* Nothing is written on failure, and only two failures exist. */
static bool accepted(int r, uint64_t value)
{
	if (r == 0)
		return true;
	require(r == -EINVAL || r == -ERANGE);
	require(value == UNTOUCHED);
	return false;
}

static void check_numbers(const char *text)
{
	uint64_t value = UNTOUCHED, again = 0;
	int64_t number = (int64_t)UNTOUCHED, number_again = 0;
	char form[32];

	if (accepted(parse_u64(text, &value), value)) {
		require(str_format(form, sizeof(form), "%" PRIu64, value) == 0);
		require(parse_u64(form, &again) == 0 && again == value);
	}
	if (accepted(parse_i64(text, &number), (uint64_t)number)) {
		require(str_format(form, sizeof(form), "%" PRId64, number) == 0);
		require(parse_i64(form, &number_again) == 0 && number_again == number);
	}
}

static void check_units(const char *text)
{
	uint64_t size = UNTOUCHED, cpu = UNTOUCHED, duration = UNTOUCHED, again = 0;
	char form[32];

	if (accepted(parse_size(text, &size), size)) {
		format_size(size, form, sizeof(form));
		require(parse_size(form, &again) == 0 && again == size);
	}
	if (accepted(parse_cpu(text, &cpu), cpu)) {
		format_cpu(cpu, form, sizeof(form));
		require(parse_cpu(form, &again) == 0 && again == cpu);
	}
	if (accepted(parse_duration(text, &duration), duration) && duration % 1000 == 0) {
		require(str_format(form, sizeof(form), "%" PRIu64 "ms", duration / 1000) == 0);
		require(parse_duration(form, &again) == 0 && again == duration);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[128];
	bool flag;

	fuzz_text(data, size, text, sizeof(text));
	check_numbers(text);
	check_units(text);
	require(parse_bool(text, &flag) == 0 || parse_bool(text, &flag) == -EINVAL);
	return 0;
}
