/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/str.h"
#include "egress/resolve.h"
#include "io/loop.h"
#include "io/watch.h"
#include "unit.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define HEAD_LEN     12
#define QUESTION_MAX 512

/* A name server that knows no name, and writes down what it was asked. */
struct server {
	struct loop *loop;
	int fd;
	char asked[1024];
	bool is_over;
};

/* The name of the first question, with dots. */
static void note_question(struct server *s, const unsigned char *packet, size_t len)
{
	size_t at = HEAD_LEN, used = strlen(s->asked);

	while (at < len && packet[at] > 0 && at + packet[at] < len) {
		used += (size_t)snprintf(s->asked + used, sizeof(s->asked) - used, "%.*s.",
		                         packet[at], (const char *)packet + at + 1);
		at += 1U + packet[at];
	}
	(void)snprintf(s->asked + used, sizeof(s->asked) - used, " ");
}

static void on_question(void *ctx, int events)
{
	struct server *s = ctx;
	unsigned char packet[QUESTION_MAX];
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	ssize_t n = recvfrom(s->fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &from_len);

	(void)events;
	if (n < HEAD_LEN)
		return;
	note_question(s, packet, (size_t)n);
	packet[2] |= 0x80; /* an answer */
	packet[3] = 3;     /* there is no such name */
	assert_int_equal(sendto(s->fd, packet, (size_t)n, 0, (struct sockaddr *)&from, from_len),
	                 n);
}

static void on_result(void *ctx, const struct in6_addr *addresses, size_t count, const char *reason)
{
	struct server *s = ctx;

	(void)addresses;
	assert_int_equal(count, 0);
	assert_non_null(reason);
	s->is_over = true;
	loop_stop(s->loop);
}

/* The host may search domains for names without a dot. */
static void names_are_resolved_as_they_are(void **state)
{
	struct server s = {.loop = loop_new()};
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(own);
	struct error err = {0};
	struct resolver *resolver;
	struct watch *watch;
	char servers[64];

	(void)state;
	s.fd = fd_socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(s.fd, (struct sockaddr *)&own, sizeof(own)), 0);
	assert_int_equal(getsockname(s.fd, (struct sockaddr *)&own, &len), 0);
	(void)snprintf(servers, sizeof(servers), "127.0.0.1:%u", ntohs(own.sin_port));
	watch = watch_new(s.loop, s.fd, on_question, &s);
	watch_set(watch, WATCH_READ);
	assert_int_equal(setenv("LOCALDOMAIN", "search.test", 1), 0);
	resolver = resolver_new(s.loop, servers, &err);
	assert_non_null(resolver);
	assert_non_null(lookup_start(resolver, "internal-db", on_result, &s));
	loop_run(s.loop);
	assert_true(s.is_over);
	assert_non_null(strstr(s.asked, "internal-db. "));
	assert_null(strstr(s.asked, "search.test"));
	watch_free(watch);
	resolver_free(resolver);
	loop_free(s.loop);
	(void)fd_close(s.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_resolved_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
