/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "guest/ports.h"

#define TITLE "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid"
#define REST  " 00000000:00000000 00:00000000 00000000  1000        0 4242 1 0 100 0 0 10 0"

static void listening_sockets_are_found(void **state)
{
	static const struct {
		const char *line;
		uint16_t port;
		uint8_t bound; /* 0: not listed */
	} cases[] = {
		{"   0: 0100007F:1F90 00000000:0000 0A" REST, 8080, WIRE_BOUND_LOOPBACK},
		{"   1: 00000000:0050 00000000:0000 0A" REST, 80, WIRE_BOUND_ANY},
		{"  12: 0200007F:0051 00000000:0000 0A" REST, 81, WIRE_BOUND_OTHER},
		{"   0: 0100007F:1F91 0100007F:C350 01" REST, 0, 0},
		{"   0: 0100007F:1F91 0100007F:C350 06" REST, 0, 0},
		{"   0: 00000000000000000000000001000000:1F92 "
	         "00000000000000000000000000000000:0000 "
	         "0A" REST,
	         8082, WIRE_BOUND_LOOPBACK},
		{"   0: 00000000000000000000000000000000:1F93 "
	         "00000000000000000000000000000000:0000 "
	         "0A" REST,
	         8083, WIRE_BOUND_ANY},
		{"   0: 0000000000000000FFFF00000100007F:1F94 "
	         "00000000000000000000000000000000:0000 "
	         "0A" REST,
	         8084, WIRE_BOUND_LOOPBACK},
		{TITLE, 0, 0},
		{"", 0, 0},
		{":", 0, 0},
		{"   0: 0100007F:1F9", 0, 0},
		{"   0: 0100007F:1F90 00000000:0000", 0, 0},
		{"   0: 0100007F0100007F:1F90 00000000:0000 0A", 0, 0},
		{"   0: 0100007G:1F90 00000000:0000 0A", 0, 0},
		{"   0: 0100007F:0000 00000000:0000 0A", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct port_table table = {.count = 0};

		port_list_line(&table, cases[i].line);
		assert_int_equal(table.count, cases[i].bound ? 1 : 0);
		if (table.count == 0)
			continue;
		assert_int_equal(table.rows[0].port, cases[i].port);
		assert_int_equal(table.rows[0].bound, cases[i].bound);
	}
}

static void a_port_is_listed_once(void **state)
{
	struct port_table table = {.count = 0};

	(void)state;
	port_list_line(&table, "   0: 0100007F:1F90 00000000:0000 0A");
	port_list_line(&table, "   1: 00000000:1F90 00000000:0000 0A");
	assert_int_equal(table.count, 1);
	assert_int_equal(table.rows[0].bound, WIRE_BOUND_LOOPBACK | WIRE_BOUND_ANY);
	assert_false(table.truncated);
}

static void more_than_the_limit_is_truncated(void **state)
{
	struct port_table table = {.count = 0};
	char line[64];

	(void)state;
	for (unsigned port = 1; port <= WIRE_LISTED_MAX + 1; port++) {
		(void)snprintf(line, sizeof(line), "   0: 0100007F:%04X 00000000:0000 0A", port);
		assert_false(table.truncated);
		port_list_line(&table, line);
	}
	assert_int_equal(table.count, WIRE_LISTED_MAX);
	assert_true(table.truncated);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listening_sockets_are_found),
		cmocka_unit_test(a_port_is_listed_once),
		cmocka_unit_test(more_than_the_limit_is_truncated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
