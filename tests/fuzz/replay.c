/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over every file of a corpus directory, without a fuzzer: old findings stay
 * fixed, with any compiler. A missing or empty directory is a failure.
 */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/file.h"
#include "fuzz.h"

#define INPUT_MAX ((size_t)16 * 1024 * 1024)

static int replay(int dir, const char *name)
{
	cleanup_buf struct buf b = BUF_INIT(INPUT_MAX);
	uint8_t *exact;
	int r = file_read_at(dir, name, &b);

	if (r < 0) {
		(void)fprintf(stderr, "%s: %s\n", name, strerror(-r));
		return r;
	}
	(void)printf("%s (%zu bytes)\n", name, b.len);
	(void)fflush(stdout);
	/* A copy of the exact size, so that a sanitizer sees the first byte read beyond it. */
	exact = malloc(b.len ? b.len : 1);
	require(exact);
	if (b.len > 0)
		memcpy(exact, b.data, b.len);
	r = LLVMFuzzerTestOneInput(exact, b.len);
	free(exact);
	return r;
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	unsigned count = 0;

	if (!dir) {
		(void)fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
		return 2;
	}
	for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
		if (e->d_name[0] == '.')
			continue;
		if (replay(dirfd(dir), e->d_name) != 0)
			return 1;
		count++;
	}
	(void)closedir(dir);
	(void)printf("%u inputs\n", count);
	return count > 0 ? 0 : 1;
}
