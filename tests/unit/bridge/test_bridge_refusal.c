/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"
#include "bridge/order.h"
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define HEAD 20

static struct cidr subnet;

static int set_up(void **state)
{
	struct error err = {0};

	(void)state;
	return cidr_parse("100.96.0.0/24", &subnet, &err);
}

/* From 100.96.0.2:0x1234 to port 7000. */
static void write_packet(uint8_t packet[64], uint8_t protocol, const char *to)
{
	static const uint8_t ports[] = {0x12, 0x34, 7000 >> 8, 7000 & 0xff};

	memset(packet, 0, 64);
	packet[0] = 0x45;
	packet[9] = protocol;
	assert_int_equal(inet_pton(AF_INET, "100.96.0.2", packet + 12), 1);
	assert_int_equal(inet_pton(AF_INET, to, packet + 16), 1);
	memcpy(packet + HEAD, ports, sizeof(ports));
}

static void address_and_port_are_found(void **state)
{
	static const struct {
		uint8_t protocol;
		const char *to;
		bool to_host;
		uint8_t why;
	} rows[] = {
		{IPPROTO_TCP, "10.1.0.9", false, BRIDGE_NOTED_ADDRESS},
		{IPPROTO_UDP, "10.1.0.9", false, BRIDGE_NOTED_ADDRESS},
		{IPPROTO_TCP, "9.9.9.1", true, BRIDGE_NOTED_HOST},
		{IPPROTO_TCP, "100.96.0.1", true, BRIDGE_NOTED_HOST},
		{IPPROTO_TCP, "100.96.0.3", false, BRIDGE_NOTED_BOX},
		{IPPROTO_TCP, "100.96.1.3", false, BRIDGE_NOTED_ADDRESS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct bridge_refusal got;
		char text[INET_ADDRSTRLEN];
		uint8_t packet[64];
		uint32_t source = 0;

		write_packet(packet, rows[i].protocol, rows[i].to);
		assert_int_equal(
			refusal_parse(packet, HEAD + 4, rows[i].to_host, &subnet, &source, &got),
			0);
		assert_int_equal(source, 0x64600002);
		assert_string_equal(inet_ntop(AF_INET, &got.address, text, sizeof(text)),
		                    rows[i].to);
		assert_int_equal(got.port, 7000);
		assert_int_equal(got.from, 0x1234);
		assert_int_equal(got.is_udp, rows[i].protocol == IPPROTO_UDP);
		assert_int_equal(got.why, rows[i].why);
	}
}

/* The ports follow the options. */
static void options_are_skipped(void **state)
{
	struct bridge_refusal got;
	uint8_t packet[64];
	uint32_t source;

	(void)state;
	write_packet(packet, IPPROTO_TCP, "10.1.0.9");
	memmove(packet + 60, packet + HEAD, 4);
	packet[0] = 0x4f;
	assert_int_equal(refusal_parse(packet, 64, false, &subnet, &source, &got), 0);
	assert_int_equal(got.port, 7000);
	assert_int_equal(refusal_parse(packet, 63, false, &subnet, &source, &got), -EPROTO);
}

static void other_packets_are_rejected(void **state)
{
	struct bridge_refusal got;
	uint8_t good[64], bad[64];
	uint32_t source;

	(void)state;
	write_packet(good, IPPROTO_TCP, "10.1.0.9");
	for (size_t len = 0; len < HEAD + 4; len++)
		assert_int_equal(refusal_parse(good, len, false, &subnet, &source, &got), -EPROTO);
	memcpy(bad, good, sizeof(bad));
	bad[0] = 0x44; /* a header shorter than any */
	assert_int_equal(refusal_parse(bad, 64, false, &subnet, &source, &got), -EPROTO);
	bad[0] = 0x65; /* IPv6 */
	assert_int_equal(refusal_parse(bad, 64, false, &subnet, &source, &got), -EPROTO);
	bad[0] = 0x45;
	bad[7] = 1; /* a later fragment */
	assert_int_equal(refusal_parse(bad, 64, false, &subnet, &source, &got), -EPROTO);
	bad[7] = 0;
	bad[9] = IPPROTO_ICMP;
	assert_int_equal(refusal_parse(bad, 64, false, &subnet, &source, &got), -EPROTO);
	assert_int_equal(refusal_parse(good, 64, false, &subnet, &source, &got), 0); /* control */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_and_port_are_found),
		cmocka_unit_test(options_are_skipped),
		cmocka_unit_test(other_packets_are_rejected),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
