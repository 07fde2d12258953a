/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <unistd.h>

#include "json/json_dump.h"

/* Counted and hashed while it is read. */
struct stream {
	int fd;
	crypto_hash_sha256_state hash;
	uint64_t bytes, max;
};

static ptrdiff_t read_some(void *ctx, void *data, size_t size)
{
	struct stream *s = ctx;
	ssize_t n;

	do
		n = read(s->fd, data, size);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	s->bytes += (uint64_t)n;
	if (s->bytes > s->max)
		return -EFBIG;
	(void)crypto_hash_sha256_update(&s->hash, data, (unsigned long long)n);
	return (ptrdiff_t)n;
}

static char *describe(struct stream *s, const struct image_source *source,
                      const struct import_counts *counts, struct error *err)
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	char hex[IMPORT_DIGEST_LEN];
	uint64_t disk_bytes = 0;
	int r = tree_measure(source->root, &disk_bytes);
	char *text = NULL;
	json_t *j;

	if (r < 0) {
		(void)error_set(err, ERR_UNAVAILABLE, -r, "measure the tree");
		return NULL;
	}
	(void)crypto_hash_sha256_final(&s->hash, digest);
	(void)sodium_bin2hex(hex, sizeof(hex), digest, sizeof(digest));
	j = json_pack("{s:s+, s:I, s:I, s:I, s:I}", "digest", "sha256:", hex, "entries",
	              (json_int_t)counts->entries, "bytes", (json_int_t)counts->bytes, "disk_bytes",
	              (json_int_t)disk_bytes, "dropped", (json_int_t)counts->dropped);
	text = j ? json_dump_text(j, JSON_COMPACT) : NULL;
	json_decref(j);
	if (!text)
		(void)error_set(err, ERR_SYSTEM, ENOMEM, "describe the tree");
	return text;
}

char *plain_import(const struct image_source *source, struct error *err)
{
	struct import_counts counts = {.out = source->progress, .layers = 1, .layer = 1};
	struct stream s = {.fd = source->fd, .max = source->limits->archive_bytes};
	const struct layer layer = {source->root, source->limits, &counts, read_some, &s};
	char rest[4096];
	ptrdiff_t n;

	(void)crypto_hash_sha256_init(&s.hash);
	if (layer_apply(&layer, err) < 0)
		return NULL;
	/* The writer of the archive waits until all of it was read. */
	while ((n = read_some(&s, rest, sizeof(rest))) > 0)
		;
	if (n < 0) {
		(void)error_set(err, ERR_INVALID, (int)-n, "read the archive");
		return NULL;
	}
	return describe(&s, source, &counts, err);
}
