/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <fcntl.h>

#include "base/fd.h"
#include "driver/counters.h"
#include "driver/traffic.h"

#define TITLES                                                                                     \
	"Inter-|   Receive                                                |  Transmit\n"           \
	" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets\n"
#define LO "    lo:     111       1    0    0    0     0          0         0  222 1 0 0 0 0 0 0\n"

static void the_line_of_the_interface_counts(void **state)
{
	static const struct {
		const char *text;
		bool found;
		uint64_t received, sent;
	} rows[] = {
		{TITLES LO "  eth0: 7 1 2 3 4 5 6 8 9 10 11 12 13 14 15 16\n", true, 7, 9},
		{TITLES "  eth0:18446744073709551614 1 2 3 4 5 6 8 9 10 11 12 13 14 15 16\n" LO,
	         true, UINT64_MAX - 1, 9},
		{TITLES LO, false, 0, 0},
		{TITLES LO " eth01: 7 1 2 3 4 5 6 8 9 10 11 12 13 14 15 16\n", false, 0, 0},
		{TITLES "  eth0: 7 1 2\n", false, 0, 0},
		{"", false, 0, 0},
		{"\n", false, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct box_network_usage usage = {0};

		assert_int_equal(traffic_parse(rows[i].text, "eth0", &usage), rows[i].found);
		assert_true(usage.received == rows[i].received && usage.sent == rows[i].sent);
		if (rows[i].found)
			assert_true(usage.connections == COUNTER_UNKNOWN);
	}
}

/* The kernel's own table; loopback is in every namespace. */
static void the_kernel_writes_what_is_read(void **state)
{
	cleanup_close int file = fd_open("/proc/self/net/dev", O_RDONLY, 0);
	struct box_network_usage usage;
	char text[4096];
	ssize_t n = pread(file, text, sizeof(text) - 1, 0);

	(void)state;
	assert_true(n > 0);
	text[n] = '\0';
	assert_true(traffic_parse(text, "lo", &usage));
	assert_false(traffic_read(-1, &usage));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_line_of_the_interface_counts),
		cmocka_unit_test(the_kernel_writes_what_is_read),
	};

	return cmocka_run_group_tests_name("driver/traffic", tests, NULL, NULL);
}
