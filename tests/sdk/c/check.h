/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what library.c and connections.c share. Strict C99: nothing of the project but the installed
 * header. */

#include <millibox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct millibox_client *client;

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "line %d: %s; last error: %s: %s\n", __LINE__, #what,      \
			        millibox_error_code(client), millibox_error_message(client));      \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)
#define SAME(one, other) CHECK(strcmp((one), (other)) == 0)
#define HAS(text, part)  CHECK(strstr((text), (part)) != NULL)

static struct millibox_request *python(const char *code)
{
	struct millibox_request *request = millibox_request_new(code);

	CHECK(millibox_request_set(request, "language", "python") == 0);
	return request;
}

static struct millibox_result *run_in(struct millibox_session *session, const char *code)
{
	struct millibox_request *request = millibox_request_new(code);
	struct millibox_result *result = NULL;

	CHECK(millibox_session_run(session, request, &result) == 0);
	millibox_request_free(request);
	return result;
}

/* Runs @code in @session; the text of its last expression must be @expected. */
static void expect(struct millibox_session *session, const char *code, const char *expected)
{
	struct millibox_result *result = run_in(session, code);

	if (strcmp(millibox_result_text(result), expected) != 0)
		fprintf(stderr, "%s: %s\n", code, millibox_result_json(result));
	SAME(millibox_result_text(result), expected);
	millibox_result_free(result);
}

static struct millibox_session *new_session(void)
{
	struct millibox_session *session = NULL;

	CHECK(millibox_session_create(client, NULL, &session) == 0);
	CHECK(millibox_session_id(session)[0] != '\0');
	return session;
}

static void end_session(struct millibox_session *session)
{
	CHECK(millibox_session_delete(session) == 0);
	millibox_session_free(session);
}

struct test_case {
	const char *name;
	void (*plain)(void);
	void (*with)(const char *argument);
};

static int run_case(const struct test_case *cases, size_t count, int argc, char **argv)
{
	client = millibox_client_new();
	for (size_t i = 0; argc > 1 && i < count; i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		if (cases[i].plain)
			cases[i].plain();
		else
			cases[i].with(argv[2]);
		millibox_client_free(client);
		printf("done\n");
		return 0;
	}
	return 2;
}
