/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/wanted.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/language/manager.h"
#include "core/template/template.h"

/* Raised when installers lay out a layer differently. */
#define LAYOUT "1"

void wanted_done(struct wanted *w)
{
	str_list_free(w->packages);
	free(w->lock);
	free(w->run);
	*w = (struct wanted){0};
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int take_packages(const struct wanted_source *source, struct wanted *w, struct error *err)
{
	size_t count = source->packages ? str_list_count(source->packages) : 0;
	size_t kept = 0;
	char at[32];

	if (count > WANTED_MAX)
		return error_field(err, "packages", "at most %d are accepted", WANTED_MAX);
	w->packages = xcalloc(count + 1, sizeof(*w->packages));
	for (size_t i = 0; i < count; i++) {
		(void)snprintf(at, sizeof(at), "packages[%zu]", i);
		if (!manager_check(source->manager, source->packages[i]))
			return error_field(err, at,
			                   "must be the name of a package for %s, like NAME or "
			                   "NAME==1.2",
			                   source->manager->name);
		w->packages[i] = xstrdup(source->packages[i]);
	}
	if (count == 0)
		return 0;
	qsort(w->packages, count, sizeof(*w->packages), compare_texts);
	for (size_t i = 0; i < count; i++) {
		if (kept > 0 && str_equal(w->packages[kept - 1], w->packages[i]))
			free(w->packages[i]);
		else
			w->packages[kept++] = w->packages[i];
	}
	for (size_t i = kept; i < count; i++)
		w->packages[i] = NULL;
	return 0;
}

static int take_lock(const struct wanted_source *source, struct wanted *w, struct error *err)
{
	size_t len = source->lock ? strlen(source->lock) : 0;

	if (!source->lock)
		return 0;
	if (len == 0 || len > WANTED_LOCK_MAX || !utf8_is_valid(source->lock, len))
		return error_field(err, "lock", "must be text of 1 to %d bytes", WANTED_LOCK_MAX);
	if (w->packages[0])
		return error_field(err, "lock", "cannot be combined with packages");
	w->lock = xstrdup(source->lock);
	return 0;
}

/* With its NUL, so that no two lists give the same bytes. */
static void add_text(crypto_hash_sha256_state *hash, const char *text)
{
	(void)crypto_hash_sha256_update(hash, (const unsigned char *)text, strlen(text) + 1);
}

/* The host's program may be replaced by an update; a named root does not change. */
static void add_place(crypto_hash_sha256_state *hash, const struct wanted_source *source)
{
	const char *root = source->template ? source->template->root : "";
	struct utsname host = {0};
	struct stat st = {0};
	char text[96];

	add_text(hash, root);
	if (!root[0] && source->program)
		(void)stat(source->program, &st);
	(void)snprintf(text, sizeof(text), "%llu %lld.%09ld", (unsigned long long)st.st_size,
	               (long long)st.st_mtim.tv_sec, (long)st.st_mtim.tv_nsec);
	add_text(hash, text);
	(void)uname(&host);
	add_text(hash, host.machine);
}

static void make_key(const struct wanted_source *source, struct wanted *w)
{
	unsigned char digest[crypto_hash_sha256_BYTES];
	crypto_hash_sha256_state hash;

	(void)crypto_hash_sha256_init(&hash);
	add_text(&hash, LAYOUT);
	add_text(&hash, w->manager->name);
	add_text(&hash, source->registry);
	add_place(&hash, source);
	add_text(&hash, w->lock ? w->lock : "");
	add_text(&hash, w->run ? w->run : "");
	for (char **package = w->packages; *package; package++)
		add_text(&hash, *package);
	(void)crypto_hash_sha256_final(&hash, digest);
	(void)sodium_bin2hex(w->key, sizeof(w->key), digest, sizeof(digest));
}

int wanted_make(const struct wanted_source *source, struct wanted *ret_wanted, struct error *err)
{
	struct wanted w = {.manager = source->manager};

	if (take_packages(source, &w, err) < 0 || take_lock(source, &w, err) < 0) {
		wanted_done(&w);
		return -1;
	}
	w.run = source->run ? xstrdup(source->run) : NULL;
	make_key(source, &w);
	*ret_wanted = w;
	return 0;
}
