/* SPDX-License-Identifier: Apache-2.0 */
#include "util.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	return (x > y) - (x < y);
}
static void sort(void)
{
	unsigned *numbers = malloc(1000000 * sizeof(*numbers)), x = 42;
	for (int i = 0; i < 1000000; i++)
		numbers[i] = x = x * 1664525u + 1013904223u;
	qsort(numbers, 1000000, sizeof(*numbers), compare);
	printf("%u %u\n", numbers[500000], numbers[999999]);
}
int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	char text[4096];
	if (!strcmp(mode, "hello"))
		printf("hello %d\n", answer());
	if (!strcmp(mode, "stdin"))
		while (fgets(text, sizeof(text), stdin))
			fputs(text, stdout);
	if (!strcmp(mode, "env"))
		printf("%s %s\n", getenv("WORD"), getcwd(text, sizeof(text)));
	if (!strcmp(mode, "args")) {
		FILE *file = fopen("data.txt", "r");
		for (int i = 2; i < argc; i++)
			printf("[%s]", argv[i]);
		while (file && fgets(text, sizeof(text), file))
			fputs(text, stdout);
	}
	if (!strcmp(mode, "signal"))
		kill(getpid(), SIGKILL);
	if (!strcmp(mode, "exit"))
		return 3;
	if (!strcmp(mode, "error"))
		abort();
	if (!strcmp(mode, "timeout"))
		for (volatile int i = 0;; i++)
			;
	if (!strcmp(mode, "memory"))
		for (;;) {
			char *p = malloc(8 << 20);
			if (!p)
				abort();
			memset(p, 'x', 8 << 20);
		}
	if (!strcmp(mode, "fork"))
		for (;;)
			fork();
	if (!strcmp(mode, "unicode"))
		puts("grüße 日本語 🎉");
	if (!strcmp(mode, "output"))
		for (int i = 0; i < 16384; i++)
			puts("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	if (!strcmp(mode, "sort"))
		sort();
	return 0;
}
