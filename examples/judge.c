/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A judge: runs a program of a stranger on the input of each test, within limits, and compares what
 * it prints.
 *
 *     cc -o judge judge.c $(pkg-config --cflags --libs millibox)
 *     ./judge program.py 3=9 12=144
 */
#include <errno.h>
#include <millibox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The program and the limits are the same for all tests. */
static struct millibox_request *read_program(const char *path)
{
	static char code[1 << 20];
	struct millibox_request *request = millibox_request_new(NULL);
	FILE *file = fopen(path, "rb");
	size_t len = file ? fread(code, 1, sizeof(code), file) : 0;

	if (!file) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	fclose(file);
	millibox_request_set_bytes(request, "code", code, len);
	millibox_request_set(request, "language", "python");
	millibox_request_set_number(request, "timeout", 1);
	millibox_request_set(request, "resources.memory", "64Mi");
	millibox_request_set(request, "network", "none");
	return request;
}

static const char *verdict(const struct millibox_result *result, const char *expected)
{
	size_t len = 0;
	const char *printed = millibox_result_stdout(result, &len);

	if (millibox_result_limit(result))
		return millibox_result_limit(result);
	if (!millibox_result_ok(result))
		return "failed";
	while (len > 0 && printed[len - 1] == '\n')
		len--;
	return len == strlen(expected) && memcmp(printed, expected, len) == 0 ? "passed"
	                                                                      : "wrong answer";
}

int main(int argc, char **argv)
{
	struct millibox_client *client = millibox_client_new();
	struct millibox_request *request = argc > 1 ? read_program(argv[1]) : NULL;
	int passed = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: %s PROGRAM.py INPUT=OUTPUT...\n", argv[0]);
		return 1;
	}
	for (int i = 2; i < argc; i++) {
		const char *equals = strchr(argv[i], '=');
		struct millibox_result *result = NULL;
		const char *word;

		if (!equals)
			continue;
		millibox_request_set_bytes(request, "stdin", argv[i], (size_t)(equals - argv[i]));
		if (millibox_run(client, request, &result) < 0) {
			fprintf(stderr, "%s: %s\n", millibox_error_code(client),
			        millibox_error_message(client));
			return 1;
		}
		word = verdict(result, equals + 1);
		printf("%.*s: %s\n", (int)(equals - argv[i]), argv[i], word);
		passed += strcmp(word, "passed") == 0;
		millibox_result_free(result);
	}
	printf("%d of %d\n", passed, argc - 2);
	millibox_request_free(request);
	millibox_client_free(client);
	return passed == argc - 2 ? 0 : 2;
}
