/* SPDX-License-Identifier: Apache-2.0 */
#include "service/refusals.h"
#include "unit.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "base/fd.h"

struct rig {
	struct refusals r;
	int bridge;
};

static void open_rig(struct rig *rig)
{
	int pair[2];

	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	*rig = (struct rig){.r = {.sock = pair[0]}, .bridge = pair[1]};
}

static void report(const struct rig *rig, struct bridge_refusal what)
{
	assert_int_equal(send(rig->bridge, &what, sizeof(what), 0), sizeof(what));
}

static struct bridge_refusal tcp(uint16_t port, uint16_t from)
{
	return (struct bridge_refusal){.address = htonl(0x0a010009),
	                               .port = port,
	                               .from = from,
	                               .why = BRIDGE_NOTED_ADDRESS};
}

/* Packets that the kernel repeats are one connection; each datagram counts. */
static void connections_are_counted(void **state)
{
	struct bridge_refusal udp = tcp(80, 9);
	struct box_denial got[4];
	struct rig rig;

	(void)state;
	open_rig(&rig);
	udp.is_udp = true;
	report(&rig, tcp(80, 1));
	report(&rig, tcp(80, 2));
	report(&rig, tcp(80, 1));
	report(&rig, tcp(81, 1));
	report(&rig, udp);
	report(&rig, udp);
	assert_int_equal(refusals_take(&rig.r, got, 2), 2);
	assert_string_equal(got[0].host, "10.1.0.9");
	assert_int_equal(got[0].by, BOX_REFUSED_ADDRESS);
	assert_int_equal(got[0].port, 80);
	assert_int_equal(got[0].count, 2);
	assert_int_equal(got[1].port, 81);
	assert_int_equal(got[1].count, 1);
	assert_int_equal(refusals_take(&rig.r, got, 4), 1);
	assert_true(got[0].is_udp);
	assert_int_equal(got[0].count, 2);
	assert_int_equal(refusals_take(&rig.r, got, 4), 0);
	(void)fd_close(rig.bridge);
	(void)fd_close(rig.r.sock);
}

static void what_is_kept_is_bounded(void **state)
{
	struct box_denial got[2 * REFUSALS_MAX];
	struct rig rig;

	(void)state;
	open_rig(&rig);
	for (uint16_t port = 1; port <= 2 * REFUSALS_MAX; port++)
		report(&rig, tcp(port, 1));
	report(&rig, tcp(1, 2));
	assert_int_equal(refusals_take(&rig.r, got, ARRAY_SIZE(got)), REFUSALS_MAX);
	assert_int_equal(got[0].count, 2);
	(void)fd_close(rig.bridge);
	(void)fd_close(rig.r.sock);
}

/* A message that is none is ignored; the answer ends the wait, and so does the end. */
static void answers_are_awaited(void **state)
{
	const struct bridge_refusal all = {.why = BRIDGE_NOTED_ALL};
	struct bridge_refusal unknown = tcp(80, 1);
	struct box_denial got[4];
	struct rig rig;
	char question;

	(void)state;
	open_rig(&rig);
	unknown.why = BRIDGE_NOTED_COUNT;
	report(&rig, all); /* to an earlier question */
	refusals_ask(&rig.r);
	assert_true(rig.r.is_asked);
	assert_int_equal(recv(rig.bridge, &question, 1, 0), 1);
	report(&rig, unknown);
	assert_int_equal(send(rig.bridge, &question, 1, 0), 1);
	report(&rig, tcp(80, 1));
	assert_false(refusals_settle(&rig.r, 0));
	report(&rig, all);
	assert_true(refusals_settle(&rig.r, 0));
	assert_false(rig.r.is_asked);
	assert_int_equal(refusals_take(&rig.r, got, 4), 1);
	refusals_ask(&rig.r);
	report(&rig, tcp(81, 1));
	assert_false(refusals_settle(&rig.r, 1000));
	(void)fd_close(rig.bridge); /* the question is in it */
	assert_true(refusals_settle(&rig.r, 1000));
	assert_false(rig.r.is_asked);
	assert_int_equal(refusals_take(&rig.r, got, 4), 1);
	refusals_ask(&rig.r);
	assert_false(rig.r.is_asked);
}

static void a_box_without_them_has_none(void **state)
{
	struct refusals r = {.sock = -1};
	struct box_denial got[1];

	(void)state;
	refusals_ask(&r);
	assert_true(refusals_settle(&r, 1000));
	assert_int_equal(refusals_take(&r, got, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_counted),
		cmocka_unit_test(what_is_kept_is_bounded),
		cmocka_unit_test(answers_are_awaited),
		cmocka_unit_test(a_box_without_them_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
