/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libmillibox adds to raw HTTP. Usage: sdk_c SOCKET ROUNDS. Requests of the library and the
 * same requests by write and read, one after the other, over one kept connection each. Prints
 * medians in milliseconds: name, raw and library by the clock, raw and library of the processor,
 * separated by tabs.
 */
#define _GNU_SOURCE
#include <millibox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WARM 20

static struct millibox_client *client;
static struct millibox_session *session;
static int raw;
static char answer[1 << 20];

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, millibox_error_message(client));
	exit(1);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		fail("connect");
	return fd;
}

/* Whether @answer is a whole response: by its length, or by the last chunk. */
static int is_whole(size_t len)
{
	const char *body = strstr(answer, "\r\n\r\n"), *length;

	if (!body)
		return 0;
	body += 4;
	length = strcasestr(answer, "Content-Length: ");
	if (length && length < body)
		return len >= (size_t)(body - answer) + strtoul(length + 16, NULL, 10);
	return len >= 5 && memcmp(answer + len - 5, "0\r\n\r\n", 5) == 0;
}

static void send_raw(const char *method, const char *path, const char *accept, const char *body)
{
	static char request[65536];
	int n = snprintf(request, sizeof(request),
	                 "%s %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\nContent-Type: "
	                 "application/json\r\n"
	                 "Content-Length: %zu\r\n\r\n%s",
	                 method, path, accept, strlen(body), body);
	size_t len = 0;
	ssize_t got;

	if (write(raw, request, (size_t)n) != n)
		fail("write");
	do {
		got = read(raw, answer + len, sizeof(answer) - 1 - len);
		if (got <= 0)
			fail("read");
		len += (size_t)got;
		answer[len] = '\0';
	} while (!is_whole(len));
	if (!strstr(answer, " 200 "))
		fail(answer);
}

static void raw_health(void)
{
	send_raw("GET", "/api/v1/health", "application/json", "");
}

static void library_health(void)
{
	char *json = NULL;

	if (millibox_call(client, "GET", "/api/v1/health", NULL, &json) < 0)
		fail("health");
	millibox_free(json);
}

static void raw_fresh(void)
{
	send_raw("POST", "/api/v1/execute", "application/json",
	         "{\"language\": \"python\", \"code\": \"print(42)\"}");
}

static void library_fresh(void)
{
	struct millibox_request *request = millibox_request_new("print(42)");
	struct millibox_result *result = NULL;

	millibox_request_set(request, "language", "python");
	if (millibox_run(client, request, &result) < 0 ||
	    strcmp(millibox_result_stdout(result, NULL), "42\n") != 0)
		fail("run");
	millibox_result_free(result);
	millibox_request_free(request);
}

static void raw_line(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/api/v1/sessions/%s/execute", millibox_session_id(session));
	send_raw("POST", path, "application/x-ndjson", "{\"code\": \"1\"}");
}

static void library_line(void)
{
	struct millibox_request *request = millibox_request_new("1");
	struct millibox_result *result = NULL;

	if (millibox_session_run(session, request, &result) < 0 ||
	    strcmp(millibox_result_text(result), "1") != 0)
		fail("session run");
	millibox_result_free(result);
	millibox_request_free(request);
}

static void raw_file(void)
{
	char path[128];

	snprintf(path, sizeof(path), "/api/v1/sessions/%s/files/f", millibox_session_id(session));
	send_raw("GET", path, "*/*", "");
}

static void library_file(void)
{
	char *data = NULL;

	if (millibox_file_read(session, "f", &data, NULL) < 0)
		fail("read a file");
	millibox_free(data);
}

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int count)
{
	qsort(values, (size_t)count, sizeof(*values), compare);
	return values[count / 2];
}

static void measure(const char *name, void (*works[2])(void), int rounds)
{
	double *wall[2], *used[2];

	for (int w = 0; w < 2; w++) {
		wall[w] = calloc((size_t)rounds, sizeof(double));
		used[w] = calloc((size_t)rounds, sizeof(double));
	}
	for (int i = -WARM; i < rounds; i++) {
		for (int w = 0; w < 2; w++) {
			double begin = now_ms(CLOCK_MONOTONIC),
			       cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);

			works[w]();
			if (i >= 0) {
				wall[w][i] = now_ms(CLOCK_MONOTONIC) - begin;
				used[w][i] = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
			}
		}
	}
	printf("%s\t%f\t%f\t%f\t%f\n", name, median(wall[0], rounds), median(wall[1], rounds),
	       median(used[0], rounds), median(used[1], rounds));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*works[2])(void);
	} rows[] = {
		{"health", {raw_health, library_health}},
		{"a fresh box", {raw_fresh, library_fresh}},
		{"a line in a session", {raw_line, library_line}},
		{"read a small file", {raw_file, library_file}},
	};
	char data[1000];

	if (argc != 3)
		return 2;
	client = millibox_client_new();
	millibox_set_socket(client, argv[1]);
	raw = connect_to(argv[1]);
	memset(data, 'x', sizeof(data));
	if (millibox_session_create(client, NULL, &session) < 0 ||
	    millibox_file_write(session, "f", data, sizeof(data)) < 0)
		fail("create a session");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void (*works[2])(void) = {rows[i].works[0], rows[i].works[1]};

		measure(rows[i].name, works, atoi(argv[2]));
	}
	millibox_session_delete(session);
	millibox_session_free(session);
	millibox_client_free(client);
	return 0;
}
