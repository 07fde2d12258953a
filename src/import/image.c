/* SPDX-License-Identifier: Apache-2.0 */
#include "import/import.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "json/json_dump.h"

/*
 * Theory of operation. There are three kinds of archive:
 *
 *   OCI layout   index.json -> manifest -> configuration and layers, each referenced by digest and
 *                size in blobs/sha256; both are checked
 *   docker save  manifest.json -> configuration and layers by name; if the configuration's name
 *                looks like a digest, it is checked
 *   plain        the files of a root (debootstrap, docker export): one layer without a
 *                configuration, known by its first name; its digest is that of the archive
 *
 * In the first two, the configuration has the digest of each uncompressed layer (diff_ids), which
 * is checked while the layer is applied. So the digest of the manifest or configuration covers
 * everything below it.
 */

#define CHUNK      65536
#define INDEX_DEEP 3
#define LIST_MAX   IMPORT_LAYERS_MAX
#define TEXT_MAX   4096

#if defined(__x86_64__)
#define ARCHITECTURE "amd64"
#elif defined(__aarch64__)
#define ARCHITECTURE "arm64"
#else
#error "add the OCI name of this architecture"
#endif

struct image {
	const struct spool *spool;
	int root;
	const struct import_limits *limits;
	struct import_counts counts;
	const struct spool_file *config;
	const struct spool_file *layers[LIST_MAX];
	size_t layers_count;
	char digest[IMPORT_DIGEST_LEN]; /* of the manifest */
	struct error *err;
};

#define cleanup_json attr_cleanup(json_decrefp)

static json_t *load_json(struct image *i, const struct spool_file *file)
{
	cleanup_buf struct buf text = BUF_INIT(IMPORT_JSON_MAX);
	cleanup_close int fd = -1;
	json_error_t error;
	json_t *j;

	if (file->size > IMPORT_JSON_MAX) {
		(void)error_set(i->err, ERR_TOO_LARGE, 0, "'%.80s' is too large", file->name);
		return NULL;
	}
	fd = spool_open(i->spool, file);
	if (fd < 0 || buf_reserve(&text, (size_t)file->size + 1) < 0 ||
	    fd_read_all(fd, text.data, (size_t)file->size) != (ssize_t)file->size) {
		(void)error_set(i->err, ERR_UNAVAILABLE, 0, "read '%.80s'", file->name);
		return NULL;
	}
	j = json_loadb(text.data, (size_t)file->size, JSON_REJECT_DUPLICATES, &error);
	if (!j)
		(void)error_set(i->err, ERR_INVALID, 0, "'%.60s': %.100s", file->name, error.text);
	return j;
}

static bool is_hex(const char *s)
{
	return strlen(s) == IMPORT_DIGEST_LEN - 1 &&
	       strspn(s, "0123456789abcdef") == IMPORT_DIGEST_LEN - 1;
}

/* Return: the hex digits of "sha256:<hex>", or NULL. */
static const char *digest_of(const json_t *value)
{
	const char *text = json_string_value(value);

	if (!text || !str_has_prefix(text, "sha256:"))
		return NULL;
	return is_hex(text + strlen("sha256:")) ? text + strlen("sha256:") : NULL;
}

/* Return: the blob of a descriptor, with digest and size checked, or NULL. */
static const struct spool_file *find_blob(struct image *i, const json_t *descriptor)
{
	const char *digest = digest_of(json_object_get(descriptor, "digest"));
	const json_t *size = json_object_get(descriptor, "size");
	const struct spool_file *file;
	char name[96];

	if (!digest || !json_is_integer(size)) {
		(void)error_set(i->err, ERR_INVALID, 0, "a descriptor without digest and size");
		return NULL;
	}
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest);
	file = spool_find(i->spool, name);
	if (!file)
		(void)error_set(i->err, ERR_INVALID, 0, "%.80s is not in the archive", name);
	else if (!str_equal(file->digest, digest))
		(void)error_set(i->err, ERR_INVALID, 0, "%.80s has the digest %.64s", name,
		                file->digest);
	else if ((uint64_t)json_integer_value(size) != file->size)
		(void)error_set(i->err, ERR_INVALID, 0,
		                "%.80s has another size than its descriptor", name);
	else
		return file;
	return NULL;
}

static bool is_our_platform(const json_t *platform)
{
	const char *os = json_string_value(json_object_get(platform, "os"));
	const char *architecture = json_string_value(json_object_get(platform, "architecture"));

	return os && architecture && str_equal(os, "linux") &&
	       str_equal(architecture, ARCHITECTURE);
}

/* Return: the entry for this machine, else the first without a platform, else NULL. */
static const json_t *choose_manifest(const json_t *manifests)
{
	const json_t *unnamed = NULL;

	for (size_t n = 0; n < json_array_size(manifests); n++) {
		const json_t *m = json_array_get(manifests, n);
		const json_t *platform = json_object_get(m, "platform");

		if (platform && is_our_platform(platform))
			return m;
		if (!platform && !unnamed)
			unnamed = m;
	}
	return unnamed;
}

static int add_layer(struct image *i, const struct spool_file *file)
{
	if (!file)
		return -1;
	if (i->layers_count == LIST_MAX || i->layers_count >= i->limits->layers)
		return import_exceeds(i->err, IMPORT_LIMIT_LAYERS, "more than %llu layers",
		                      (unsigned long long)i->limits->layers);
	i->layers[i->layers_count++] = file;
	return 0;
}

static int use_manifest(struct image *i, const json_t *manifest, const struct spool_file *file)
{
	const json_t *layers = json_object_get(manifest, "layers");

	i->config = find_blob(i, json_object_get(manifest, "config"));
	if (!i->config)
		return -1;
	memcpy(i->digest, file->digest, sizeof(i->digest));
	for (size_t n = 0; n < json_array_size(layers); n++)
		if (add_layer(i, find_blob(i, json_array_get(layers, n))) < 0)
			return -1;
	return 0;
}

static int use_index(struct image *i, const struct spool_file *file)
{
	cleanup_json json_t *j = load_json(i, file);

	for (int deep = 0; j && deep < INDEX_DEEP; deep++) {
		const json_t *manifests = json_object_get(j, "manifests");
		const json_t *chosen;

		if (!manifests)
			return use_manifest(i, j, file);
		chosen = choose_manifest(manifests);
		if (!chosen)
			return error_set(i->err, ERR_INVALID, 0,
			                 "the image has no manifest for linux/%s", ARCHITECTURE);
		file = find_blob(i, chosen);
		if (!file)
			return -1;
		json_decref(j);
		j = load_json(i, file);
	}
	return j ? error_set(i->err, ERR_INVALID, 0, "indexes are nested too deeply") : -1;
}

/* In "<hex>.json" and "blobs/sha256/<hex>" the name is the digest. */
static int check_name(struct image *i, const struct spool_file *file)
{
	const char *slash = strrchr(file->name, '/');
	const char *last = slash ? slash + 1 : file->name;
	cleanup_free char *stem = xmemdup0(last, strcspn(last, "."));

	if (is_hex(stem) && !str_equal(stem, file->digest))
		return error_set(i->err, ERR_INVALID, 0, "'%.80s' has the digest %.64s", file->name,
		                 file->digest);
	return 0;
}

static int use_docker_save(struct image *i, const struct spool_file *file)
{
	cleanup_json json_t *j = load_json(i, file);
	const json_t *first = json_array_get(j, 0);
	const char *config = json_string_value(json_object_get(first, "Config"));
	const json_t *layers = json_object_get(first, "Layers");

	if (!j)
		return -1;
	i->config = config ? spool_find(i->spool, config) : NULL;
	if (!i->config || !json_is_array(layers))
		return error_set(i->err, ERR_INVALID, 0, "manifest.json names no configuration");
	if (check_name(i, i->config) < 0)
		return -1;
	memcpy(i->digest, i->config->digest, sizeof(i->digest));
	for (size_t n = 0; n < json_array_size(layers); n++) {
		const char *name = json_string_value(json_array_get(layers, n));
		const struct spool_file *layer = name ? spool_find(i->spool, name) : NULL;

		if (!layer)
			return error_set(i->err, ERR_INVALID, 0,
			                 "layer '%.80s' is not in the archive", name ? name : "?");
		if (add_layer(i, layer) < 0)
			return -1;
	}
	return 0;
}

static int find_parts(struct image *i)
{
	const struct spool_file *index = spool_find(i->spool, "index.json");
	const struct spool_file *saved = spool_find(i->spool, "manifest.json");

	if (index)
		return use_index(i, index);
	if (saved)
		return use_docker_save(i, saved);
	return error_set(i->err, ERR_INVALID, 0,
	                 "neither an image (index.json, manifest.json) nor a root file system (its "
	                 "first entry would be bin, etc, usr ...)");
}

/* Uncompressed, counted and hashed while it is read. */
struct stream {
	struct archive *archive;
	crypto_hash_sha256_state hash;
	uint64_t bytes, max;
};

static ptrdiff_t read_stream(void *ctx, void *data, size_t size)
{
	struct stream *s = ctx;
	la_ssize_t n = archive_read_data(s->archive, data, size);

	if (n < 0)
		return -EBADMSG;
	s->bytes += (uint64_t)n;
	if (s->bytes > s->max)
		return -EFBIG;
	(void)crypto_hash_sha256_update(&s->hash, data, (unsigned long long)n);
	return (ptrdiff_t)n;
}

static int end_stream(struct image *i, struct stream *s, char ret_digest[IMPORT_DIGEST_LEN])
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	char rest[CHUNK];
	ptrdiff_t n;

	/* The digest also covers what follows the end of the archive. */
	while ((n = read_stream(s, rest, sizeof(rest))) > 0)
		;
	if (n == -EFBIG)
		return import_exceeds(i->err, IMPORT_LIMIT_ROOT, "the layer is too large");
	if (n < 0)
		return error_set(i->err, ERR_INVALID, 0, "the layer is damaged");
	(void)crypto_hash_sha256_final(&s->hash, digest);
	(void)sodium_bin2hex(ret_digest, IMPORT_DIGEST_LEN, digest, sizeof(digest));
	return 0;
}

static int check_diff(struct image *i, struct stream *s, const char *expected)
{
	char hex[IMPORT_DIGEST_LEN];

	if (end_stream(i, s, hex) < 0)
		return -1;
	if (!str_equal(hex, expected))
		return error_set(i->err, ERR_INVALID, 0, "its diff_id is %.64s, not %.64s", hex,
		                 expected);
	return 0;
}

/* @in NULL: of the file @fd. */
static int open_stream(struct image *i, struct stream *s, int fd, struct input *in)
{
	struct archive_entry *entry;

	(void)crypto_hash_sha256_init(&s->hash);
	/* Allows for headers and padding, which exceed the content of small files. */
	s->max = i->limits->root_bytes + i->limits->entries * 2048;
	s->archive = archive_read_new();
	(void)archive_read_support_format_raw(s->archive);
	(void)archive_read_support_format_empty(s->archive);
	(void)archive_read_support_filter_gzip(s->archive);
	(void)archive_read_support_filter_zstd(s->archive);
	if ((in ? input_open(in, s->archive) : archive_read_open_fd(s->archive, fd, CHUNK)) !=
	            ARCHIVE_OK ||
	    archive_read_next_header(s->archive, &entry) != ARCHIVE_OK)
		return error_set(i->err, ERR_INVALID, 0, "%.100s",
		                 archive_error_string(s->archive));
	return 0;
}

static int apply_layer(struct image *i, size_t n, const char *diff_id)
{
	cleanup_close int fd = spool_open(i->spool, i->layers[n]);
	struct stream s = {0};
	const struct layer layer = {i->root, i->limits, &i->counts, read_stream, &s};
	int r = fd < 0 ? error_set(i->err, ERR_UNAVAILABLE, -fd, "open it")
	               : open_stream(i, &s, fd, NULL);

	i->counts.layer = n + 1;
	layer_report(&i->counts, true);
	if (r >= 0)
		r = layer_apply(&layer, i->err);
	if (r >= 0)
		r = check_diff(i, &s, diff_id);
	(void)archive_read_free(s.archive);
	return r < 0 ? error_wrap(i->err, "layer %zu", n + 1) : 0;
}

static int apply_layers(struct image *i, const json_t *config)
{
	const json_t *ids = json_object_get(json_object_get(config, "rootfs"), "diff_ids");

	if (json_array_size(ids) != i->layers_count || i->layers_count == 0)
		return error_set(i->err, ERR_INVALID, 0, "%zu layers, but %zu diff_ids",
		                 i->layers_count, json_array_size(ids));
	i->counts.layers = i->layers_count;
	for (size_t n = 0; n < i->layers_count; n++) {
		const char *id = digest_of(json_array_get(ids, n));

		if (!id)
			return error_set(i->err, ERR_INVALID, 0, "a diff_id is no digest");
		if (apply_layer(i, n, id) < 0)
			return -1;
	}
	return 0;
}

static int apply_root(struct image *i, struct input *in)
{
	struct stream s = {0};
	const struct layer layer = {i->root, i->limits, &i->counts, read_stream, &s};
	int r = open_stream(i, &s, -1, in);

	i->layers_count = i->counts.layers = i->counts.layer = 1;
	layer_report(&i->counts, true);
	if (r >= 0)
		r = layer_apply(&layer, i->err);
	if (r >= 0)
		r = end_stream(i, &s, i->digest);
	(void)archive_read_free(s.archive);
	return r;
}

/* At most LIST_MAX strings of bounded length; skips all other items. */
static json_t *copy_strings(const json_t *list)
{
	json_t *out = json_array();

	for (size_t n = 0; n < json_array_size(list) && n < LIST_MAX; n++) {
		json_t *item = json_array_get(list, n);

		if (json_is_string(item) && json_string_length(item) <= TEXT_MAX)
			(void)json_array_append(out, item);
	}
	return out;
}

static char *describe_image(const struct image *i, const json_t *config)
{
	const json_t *run = json_object_get(config, "config");
	const char *dir = json_string_value(json_object_get(run, "WorkingDir"));
	uint64_t disk_bytes = 0;
	int r = tree_measure(i->root, &disk_bytes);
	cleanup_json json_t *j = json_pack(
		"{s:s+, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:s}", "digest",
		"sha256:", i->digest, "layers", (json_int_t)i->layers_count, "entries",
		(json_int_t)i->counts.entries, "bytes", (json_int_t)i->counts.bytes, "disk_bytes",
		(json_int_t)disk_bytes, "dropped", (json_int_t)i->counts.dropped, "architecture",
		ARCHITECTURE, "env", copy_strings(json_object_get(run, "Env")), "entrypoint",
		copy_strings(json_object_get(run, "Entrypoint")), "cmd",
		copy_strings(json_object_get(run, "Cmd")), "working_dir",
		dir && strlen(dir) <= TEXT_MAX ? dir : "");
	char *text = j ? json_dump_text(j, JSON_COMPACT) : NULL;

	if (r < 0) {
		(void)error_set(i->err, ERR_UNAVAILABLE, -r, "measure the root");
		free(text);
		return NULL;
	}
	if (text && strlen(text) < IMPORT_RESULT_MAX)
		return text;
	free(text);
	(void)error_set(i->err, ERR_TOO_LARGE, 0, "the configuration of the image is too large");
	return NULL;
}

static int check_platform(struct image *i, const json_t *config)
{
	if (is_our_platform(config))
		return 0;
	return error_set(i->err, ERR_INVALID, 0, "the image is not for linux/%s", ARCHITECTURE);
}

static char *import_image(struct image *i, const struct image_source *source, struct input *in)
{
	struct spool *spool = spool_read(in, source->blobs, source->limits, i->err);
	cleanup_json json_t *config = NULL;
	char *result = NULL;

	i->spool = spool;
	if (spool && find_parts(i) == 0)
		config = load_json(i, i->config);
	if (config && check_platform(i, config) == 0 && apply_layers(i, config) == 0)
		result = describe_image(i, config);
	spool_free(spool);
	return result;
}

char *image_import(const struct image_source *source, struct error *err)
{
	struct image image = {.root = source->root,
	                      .limits = source->limits,
	                      .counts.out = source->progress,
	                      .err = err};
	struct input *in = input_new(source->fd, err);
	char *result = NULL;

	if (in && input_is_root(in))
		result = apply_root(&image, in) < 0 ? NULL : describe_image(&image, NULL);
	else if (in)
		result = import_image(&image, source, in);
	input_free(in);
	return result;
}
