/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/head.h"
#include "text.h"
#include "unit.h"

#include "base/str.h"

#define LINE    "GET http://example.com/ HTTP/1.1\r\n"
#define HOST    "Host: example.com\r\n"
#define GET     LINE HOST
#define POST    "POST http://example.com/ HTTP/1.1\r\n" HOST
#define CONNECT "CONNECT example.com:443 HTTP/1.1\r\n"

static struct head head; /* large */

static int parse(const char *data, size_t len, struct error *err)
{
	char *exact = text_exact(data, len);
	int r;

	error_clear(err);
	memset(&head, 0x5a, sizeof(head));
	r = head_parse(exact, len, NULL, &head, err);
	assert_int_equal(error_is_set(err), r < 0);
	if (r != 1)
		assert_int_equal(head.size, (size_t)0x5a5a5a5a5a5a5a5a);
	free(exact);
	return r;
}

static void requests_in_strict_form_are_parsed(void **state)
{
	static const struct {
		struct text text;
		const char *method, *host;
		uint16_t port;
		const char *path; /* NULL: CONNECT */
		bool chunked;
		uint64_t length;
	} good[] = {
		{TEXT(GET "\r\n"), "GET", "example.com", 80, "/", false, 0},
		{TEXT(LINE "hOST:EXAMPLE.com.:80\t \r\n\r\n"), "GET", "example.com", 80, "/", false,
	         0},
		{TEXT("GET http://example.com HTTP/1.1\r\n" HOST "\r\n"), "GET", "example.com", 80,
	         "/", false, 0},
		{TEXT("GET http://Example.com:8080/a/b?c=d&e=http://f@g/ HTTP/1.1\r\n"
	              "Host: example.com:8080\r\n\r\n"),
	         "GET", "example.com", 8080, "/a/b?c=d&e=http://f@g/", false, 0},
		{TEXT("M-SEARCH HTTP://[::1]:81/x HTTP/1.1\r\nHost: [0::1]:81\r\n\r\n"), "M-SEARCH",
	         "::1", 81, "/x", false, 0},
		{TEXT("GET http://x/ HTTP/1.0\r\n\r\n"), "GET", "x", 80, "/", false, 0},
		{TEXT(POST "Content-Length: 0\r\n\r\n"), "POST", "example.com", 80, "/", false, 0},
		{TEXT(POST "Content-Length:9223372036854775807\r\n\r\n"), "POST", "example.com", 80,
	         "/", false, INT64_MAX},
		{TEXT(POST "Transfer-Encoding: Chunked\r\n\r\n"), "POST", "example.com", 80, "/",
	         true, 0},
		{TEXT(GET "X: a\tb \xff\r\nEmpty:\r\nA_b!#$%&'*+-.^`|~: x\r\n\r\n"), "GET",
	         "example.com", 80, "/", false, 0},
		{TEXT(GET "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\r\n"), "GET",
	         "example.com", 80, "/", false, 0},
		{TEXT(CONNECT "\r\n"), "CONNECT", "example.com", 443, NULL, false, 0},
		{TEXT(CONNECT HOST "\r\n"), "CONNECT", "example.com", 443, NULL, false, 0},
		{TEXT(CONNECT "Host: example.com:443\r\nContent-Length: 0\r\n\r\n"), "CONNECT",
	         "example.com", 443, NULL, false, 0},
		{TEXT("CONNECT [2001:db8::1]:22 HTTP/1.0\r\n\r\n"), "CONNECT", "2001:db8::1", 22,
	         NULL, false, 0},
		{TEXT("CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n"), "CONNECT", "127.0.0.1", 1, NULL,
	         false, 0},
	};
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char more[512] = "";
		size_t len = good[i].text.len;

		for (size_t part = 0; part < len; part++)
			assert_int_equal(parse(good[i].text.data, part, &err), 0);
		if (parse(good[i].text.data, len, &err) != 1)
			fail_msg("%s: %s", good[i].text.data, err.msg);
		/* What follows is not looked at. */
		memcpy(more, good[i].text.data, len);
		memcpy(more + len, "\n\0\n", 3);
		assert_int_equal(head_parse(more, len + 3, NULL, &head, &err), 1);
		assert_int_equal(head.size, len);
		assert_string_equal(head.method, good[i].method);
		assert_string_equal(head.target.host, good[i].host);
		assert_int_equal(head.target.port, good[i].port);
		assert_int_equal(head.is_connect, good[i].path == NULL);
		if (good[i].path) {
			assert_int_equal(head.path_len, strlen(good[i].path));
			assert_memory_equal(head.path, good[i].path, head.path_len);
		}
		assert_int_equal(head.chunked, good[i].chunked);
		assert_int_equal(head.length, good[i].length);
	}
}

static void other_requests_are_refused(void **state)
{
	static const struct {
		struct text text;
		const char *why; /* a part of the message */
	} bad[] = {
		/* Request line. */
		{TEXT("\r\n" GET "\r\n"), "method"},
		{TEXT("\r\n\r\n"), "method"},
		{TEXT("GET\r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET http://x/\r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET  http://x/ HTTP/1.1\r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET http://x/  HTTP/1.1\r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET http://x/ HTTP/1.1 \r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET http://x/ y HTTP/1.1\r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET\thttp://x/\tHTTP/1.1\r\n\r\n"), "method"},
		{TEXT(" GET http://x/ HTTP/1.1\r\n\r\n"), "method"},
		{TEXT("GET http://x/ HTTP/1.2\r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET http://x/ HTTP/2.0\r\n\r\n"), "HTTP/1.1"},
		{TEXT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET http://x/ http/1.1\r\n\r\n"), "HTTP/1.1"},
		{TEXT("GET http://x/ HTTP/1.1x\r\n\r\n"), "HTTP/1.1"},
		{TEXT("get http://example.com/ HTTP/1.1\r\n" HOST "\r\n"), "method"},
		{TEXT("G3T http://example.com/ HTTP/1.1\r\n" HOST "\r\n"), "method"},
		{TEXT("GE\0T http://example.com/ HTTP/1.1\r\n" HOST "\r\n"), "control"},
		{TEXT("ABCDEFGHIJKLMNOPQRSTU http://x/ HTTP/1.1\r\n\r\n"), "method"},
		{TEXT("TRACE http://example.com/ HTTP/1.1\r\n" HOST "\r\n"), "TRACE"},
		{TEXT("TRACK http://example.com/ HTTP/1.1\r\n" HOST "\r\n"), "TRACE"},
		/* Forms of the target. */
		{TEXT("GET / HTTP/1.1\r\n" HOST "\r\n"), "whole URL"},
		{TEXT("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), "http://"},
		{TEXT("GET example.com/ HTTP/1.1\r\n" HOST "\r\n"), "http://"},
		{TEXT("GET example.com:80 HTTP/1.1\r\n" HOST "\r\n"), "http://"},
		{TEXT("GET https://example.com/ HTTP/1.1\r\n" HOST "\r\n"), "http://"},
		{TEXT("GET ftp://example.com/ HTTP/1.1\r\n" HOST "\r\n"), "http://"},
		{TEXT("GET http:/example.com/ HTTP/1.1\r\n" HOST "\r\n"), "http://"},
		{TEXT("GET http:\\\\example.com/ HTTP/1.1\r\n" HOST "\r\n"), "http://"},
		{TEXT("GET http:///example.com/ HTTP/1.1\r\n" HOST "\r\n"),
	         "URL: the host is empty"},
		{TEXT("GET http:// HTTP/1.1\r\n" HOST "\r\n"), "URL: the host is empty"},
		{TEXT("GET http://example.com?x HTTP/1.1\r\n" HOST "\r\n"), "slash"},
		{TEXT("GET http://example.com#x HTTP/1.1\r\n" HOST "\r\n"), "slash"},
		{TEXT("GET http://example.com/#x HTTP/1.1\r\n" HOST "\r\n"), "fragment"},
		{TEXT("GET http://u@example.com/ HTTP/1.1\r\n" HOST "\r\n"), "user information"},
		{TEXT("GET http://u:p@example.com/ HTTP/1.1\r\n" HOST "\r\n"), "user information"},
		{TEXT("GET http://evil.test\\@example.com/ HTTP/1.1\r\n" HOST "\r\n"), "user"},
		{TEXT("GET http://evil.test\\.example.com/ HTTP/1.1\r\n" HOST "\r\n"), "URL: "},
		{TEXT("GET http://example.com:/ HTTP/1.1\r\n" HOST "\r\n"), "port"},
		{TEXT("GET http://example.com:080/ HTTP/1.1\r\n" HOST "\r\n"), "port"},
		{TEXT("GET http://2130706433/ HTTP/1.1\r\nHost: 2130706433\r\n\r\n"), "notation"},
		{TEXT("GET http://0x7f.1/ HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n"), "notation"},
		{TEXT("GET http://[::ffff:1.2.3.4]/ HTTP/1.1\r\nHost: x\r\n\r\n"), "mapped"},
		{TEXT("GET http://[fe80::1%25eth0]/ HTTP/1.1\r\nHost: x\r\n\r\n"), "IPv6"},
		{TEXT("GET http://exam%70le.com/ HTTP/1.1\r\n" HOST "\r\n"), "URL: "},
		{TEXT("GET http://example.com/\x80 HTTP/1.1\r\n" HOST "\r\n"), "visible"},
		{TEXT("GET http://example.com/\t HTTP/1.1\r\n" HOST "\r\n"), "visible"},
		{TEXT("GET http://example.com/\x7f HTTP/1.1\r\n" HOST "\r\n"), "control"},
		{TEXT("GET http://example.com/\0 HTTP/1.1\r\n" HOST "\r\n"), "control"},
		{TEXT("CONNECT example.com HTTP/1.1\r\n\r\n"), "port is missing"},
		{TEXT("CONNECT http://example.com:443/ HTTP/1.1\r\n\r\n"), "CONNECT: "},
		{TEXT("CONNECT /x HTTP/1.1\r\n\r\n"), "CONNECT: "},
		{TEXT("CONNECT u@example.com:443 HTTP/1.1\r\n\r\n"), "CONNECT: "},
		{TEXT("CONNECT example.com:443/ HTTP/1.1\r\n\r\n"), "port"},
		{TEXT("CONNECT 127.1:443 HTTP/1.1\r\n\r\n"), "notation"},
		/* Host. */
		{TEXT(LINE "\r\n"), "Host is missing"},
		{TEXT(GET HOST "\r\n"), "Host is repeated"},
		{TEXT(GET "Host: evil.test\r\n\r\n"), "Host is repeated"},
		{TEXT(LINE "Host:\r\n\r\n"), "Host: the host is empty"},
		{TEXT(LINE "Host: evil.test\r\n\r\n"), "Host differs"},
		{TEXT(LINE "Host: example.com:81\r\n\r\n"), "Host differs"},
		{TEXT(LINE "Host: example.com.evil.test\r\n\r\n"), "Host differs"},
		{TEXT(LINE "Host: example.com, evil.test\r\n\r\n"), "Host: "},
		{TEXT(LINE "Host: u@example.com\r\n\r\n"), "Host: "},
		{TEXT(LINE "Host: example.com/\r\n\r\n"), "Host: "},
		{TEXT(LINE "Host : example.com\r\n\r\n"), "token"},
		{TEXT(LINE " Host: example.com\r\n\r\n"), "folded"},
		{TEXT("GET http://x:8080/ HTTP/1.1\r\nHost: x\r\n\r\n"), "Host differs"},
		{TEXT("GET http://x/ HTTP/1.0\r\nHost: y\r\n\r\n"), "Host differs"},
		{TEXT(CONNECT "Host: evil.test:443\r\n\r\n"), "Host differs"},
		{TEXT(CONNECT "Host: example.com:80\r\n\r\n"), "Host differs"},
		/* Length. */
		{TEXT(POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), "more than once"},
		{TEXT(POST "Content-Length: 1\r\ncontent-length: 2\r\n\r\n"), "more than once"},
		{TEXT(POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), "more than"},
		{TEXT(POST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"), "more than"},
		{TEXT(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
	         "more than"},
		{TEXT(POST "Content-Length: 1, 1\r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length: \r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length: +1\r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length: -1\r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length: 01\r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length: 0x1\r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length: 1 2\r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length: 9223372036854775808\r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length: 18446744073709551617\r\n\r\n"), "decimal"},
		{TEXT(POST "Content-Length : 1\r\n\r\n"), "token"},
		{TEXT(POST "Transfer-Encoding : chunked\r\n\r\n"), "token"},
		{TEXT(POST "Transfer-Encoding: identity\r\n\r\n"), "not chunked"},
		{TEXT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"), "not chunked"},
		{TEXT(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"), "not chunked"},
		{TEXT(POST "Transfer-Encoding: xchunked\r\n\r\n"), "not chunked"},
		{TEXT(POST "Transfer-Encoding: chunked;x\r\n\r\n"), "not chunked"},
		{TEXT(POST "Transfer-Encoding:\r\n\r\n"), "not chunked"},
		{TEXT(POST "Transfer-Encoding: \x0b"
	                   "chunked\r\n\r\n"),
	         "control"},
		{TEXT(POST "Transfer-Encoding:\r\n chunked\r\n\r\n"), "not chunked"},
		{TEXT("POST http://x/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "HTTP/1.0"},
		{TEXT(CONNECT "Content-Length: 1\r\n\r\n"), "no body"},
		{TEXT(CONNECT "Transfer-Encoding: chunked\r\n\r\n"), "no body"},
		/* Lines. */
		{TEXT("GET http://example.com/ HTTP/1.1\n"), "LF"},
		{TEXT("\n"), "LF"},
		{TEXT(GET "\n"), "LF"},
		{TEXT(GET "X: y\n"), "LF"},
		{TEXT(GET "X: y\nEvil: z\r\n\r\n"), "LF"},
		{TEXT(GET "X: y\rEvil: z\r\n\r\n"), "control"},
		{TEXT(GET "X: y\r\r\n\r\n"), "control"},
		{TEXT(GET "X: a\0b\r\n\r\n"), "control"},
		{TEXT(GET "X: a\x1b[2J\r\n\r\n"), "control"},
		{TEXT(GET "X: a\r\n b\r\n\r\n"), "folded"},
		{TEXT(GET "X: a\r\n\tb: c\r\n\r\n"), "folded"},
		{TEXT(GET "X\r\n\r\n"), "colon"},
		{TEXT(GET ": x\r\n\r\n"), "token"},
		{TEXT(GET "X Y: z\r\n\r\n"), "token"},
		{TEXT(GET "X\t: z\r\n\r\n"), "token"},
		{TEXT(GET "X(: z\r\n\r\n"), "token"},
		{TEXT(GET "X\xc3\xa4: z\r\n\r\n"), "token"},
		/* Others. */
		{TEXT(GET "Upgrade: websocket\r\n\r\n"), "Upgrade"},
		{TEXT(GET "Upgrade: h2c, websocket\r\n\r\n"), "Upgrade"},
		{TEXT(GET "Upgrade: h2c\r\nUpgrade: h2c\r\n\r\n"), "Upgrade"},
		{TEXT(GET "Connection: host\r\n\r\n"), "Connection names"},
		{TEXT(POST "Content-Length: 1\r\nConnection: close, Content-Length\r\n\r\n"),
	         "Connection names"},
		{TEXT(GET "Connection: transfer-encoding\r\n\r\n"), "Connection names"},
		{TEXT(GET "Connection: a b\r\n\r\n"), "list"},
		{TEXT(GET "Connection: ,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,x\r\n\r\n"), "too many"},
	};
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (parse(bad[i].text.data, bad[i].text.len, &err) != -1)
			fail_msg("accepted: %s", bad[i].text.data);
		if (!strstr(err.msg, bad[i].why))
			fail_msg("%s: %s", bad[i].text.data, err.msg);
		/* A part of it is refused as well, or needs more. */
		for (size_t len = 0; len < bad[i].text.len; len++)
			assert_true(parse(bad[i].text.data, len, &err) <= 0);
	}
}

static void head_has_a_maximum(void **state)
{
	static char data[HEAD_MAX + 8];
	size_t len = strlen(GET "X: ");
	struct error err = {0};

	(void)state;
	memset(data, 'x', sizeof(data));
	memcpy(data, GET "X: ", len);
	memcpy(data + HEAD_MAX - 4, "\r\n\r\n", 4);
	assert_int_equal(parse(data, HEAD_MAX - 1, &err), 0);
	assert_int_equal(parse(data, HEAD_MAX, &err), 1);
	assert_int_equal(parse(data, sizeof(data), &err), 1);
	memset(data + HEAD_MAX - 4, 'x', 4);
	memcpy(data + HEAD_MAX - 3, "\r\n\r\n", 4);
	assert_int_equal(parse(data, HEAD_MAX, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	assert_int_equal(parse(data, sizeof(data), &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
}

static void fields_have_a_maximum(void **state)
{
	struct buf b = BUF_INIT(HEAD_MAX);
	struct error err = {0};

	(void)state;
	assert_int_equal(buf_add_str(&b, GET), 0);
	for (size_t i = 1; i < HEAD_FIELDS; i++)
		assert_int_equal(buf_add_str(&b, "X: y\r\n"), 0);
	assert_int_equal(buf_add_str(&b, "\r\n"), 0);
	assert_int_equal(parse(b.data, b.len, &err), 1);
	assert_int_equal(head.field_count, HEAD_FIELDS);
	b.len -= 2;
	assert_int_equal(buf_add_str(&b, "X: y\r\n\r\n"), 0);
	assert_int_equal(parse(b.data, b.len, &err), -1);
	assert_non_null(strstr(err.msg, "128"));
	buf_done(&b);
}

static void server_gets_the_origin_form(void **state)
{
	static const struct {
		const char *client, *server;
	} rows[] = {
		{GET "\r\n", "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"},
		{"GET http://EXAMPLE.com.:80?/ HTTP/1.1\r\n\r\n", NULL},
		{"GET http://EXAMPLE.com.:80 HTTP/1.1\r\nhost: example.COM\r\n\r\n",
	         "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"},
		{"PUT http://[::1]:8080/a?b HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
	         "PUT /a?b HTTP/1.0\r\nHost: [::1]:8080\r\nConnection: close\r\n"
	         "Content-Length: 3\r\n\r\n"},
		{POST "transfer-encoding: CHUNKED\r\nExpect:  100-continue \r\n\r\n",
	         "POST / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n"
	         "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{POST "Content-Length: 0\r\n\r\n",
	         "POST / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n"
	         "Content-Length: 0\r\n\r\n"},
		/* Hop by hop. */
		{GET "Proxy-Authorization: x\r\nproxy-connection: keep-alive\r\nKeep-Alive: 1\r\n"
	             "A: 1\r\nTE: trailers\r\nTrailer: X\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
	             "Connection: keep-alive, b ,,C\r\nB: 2\r\nc: 3\r\nConnection: D\r\nd: 4\r\n"
	             "BC: 5\r\n\r\n",
	         "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nA: 1\r\nBC: "
	         "5\r\n\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf b = BUF_INIT(HEAD_MAX), small = BUF_INIT(20);
		struct error err = {0};
		int r = head_parse(rows[i].client, strlen(rows[i].client), NULL, &head, &err);

		assert_int_equal(r, rows[i].server ? 1 : -1);
		if (!rows[i].server)
			continue;
		assert_int_equal(head_write_origin(&head, NULL, &b), 0);
		assert_string_equal(b.data, rows[i].server);
		assert_true(head_write_origin(&head, NULL, &small) < 0);
		buf_done(&b);
		buf_done(&small);
	}
}

/* Where rules look at method and path, a field cannot change them; elsewhere it passes. */
static void judged_requests_have_no_overrides(void **state)
{
	static const char client[] = GET
		"X-HTTP-Method-Override: DELETE\r\nx-http-method: PUT\r\nX_Method_Override: PUT\r\n"
		"X-Original-URL: /admin\r\nX_REWRITE-URL: /admin\r\nScript_Name: /a\r\n"
		"X-Forwarded-Prefix: /admin\r\nX-Original: 1\r\nX-HTTP-Method-Overrides: 2\r\n\r\n";
	static const char server[] =
		"GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nX-Original: 1\r\n"
		"X-HTTP-Method-Overrides: 2\r\n\r\n";
	struct buf open = BUF_INIT(HEAD_MAX), judged = BUF_INIT(HEAD_MAX);
	struct error err = {0};

	(void)state;
	assert_int_equal(head_parse(client, strlen(client), NULL, &head, &err), 1);
	assert_int_equal(head_write_origin(&head, NULL, &open), 0);
	assert_non_null(strstr(open.data, "\r\nX-Original-URL: /admin\r\n"));
	assert_non_null(strstr(open.data, "\r\nX_Method_Override: PUT\r\n"));
	head.is_judged = true;
	assert_int_equal(head_write_origin(&head, NULL, &judged), 0);
	assert_string_equal(judged.data, server);
	buf_done(&open);
	buf_done(&judged);
}

/* Return: as head_parse for a tunnel to site.test:443. */
static int parse_inside(const char *text, struct head *ret, struct error *err)
{
	static const struct target site = {.host = "site.test", .port = 443};

	return head_parse(text, strlen(text), &site, ret, err);
}

static void a_tunnel_has_requests_for_its_host_only(void **state)
{
	static const char *const bad[] = {
		"GET /a HTTP/1.1\r\nHost: other.test\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: site.test:80\r\n\r\n",
		"GET /a HTTP/1.1\r\n\r\n",
		"GET http://site.test/a HTTP/1.1\r\nHost: site.test\r\n\r\n",
		"GET https://site.test/a HTTP/1.1\r\nHost: site.test\r\n\r\n",
		"GET  HTTP/1.1\r\nHost: site.test\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: site.test\r\n\r\n",
		"CONNECT site.test:443 HTTP/1.1\r\nHost: site.test\r\n\r\n",
		"TRACE / HTTP/1.1\r\nHost: site.test\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	};
	struct error err = {0};
	struct buf out = BUF_INIT(4096);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error why = {0};

		assert_int_equal(parse_inside(bad[i], &head, &why), -1);
	}
	assert_int_equal(parse_inside("GET /a?b HTTP/1.1\r\nHost: SITE.test:443\r\nX: y\r\n\r\n",
	                              &head, &err),
	                 1);
	assert_string_equal(head.target.host, "site.test");
	assert_int_equal(head_write_origin(&head, NULL, &out), 0);
	assert_string_equal(out.data, "GET /a?b HTTP/1.1\r\nHost: site.test\r\n"
	                              "Connection: close\r\nX: y\r\n\r\n");
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tunnel_has_requests_for_its_host_only),
		cmocka_unit_test(requests_in_strict_form_are_parsed),
		cmocka_unit_test(other_requests_are_refused),
		cmocka_unit_test(head_has_a_maximum),
		cmocka_unit_test(fields_have_a_maximum),
		cmocka_unit_test(server_gets_the_origin_form),
		cmocka_unit_test(judged_requests_have_no_overrides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
