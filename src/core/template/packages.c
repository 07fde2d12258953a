/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/packages.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"

struct packages {
	char **patterns;      /* owned */
	uint64_t state;       /* of the directories */
	struct map *versions; /* normalised name -> owned text */
};

static void drop_versions(struct packages *p)
{
	size_t pos = 0;
	char *version;

	while (p->versions && (version = map_next(p->versions, &pos, NULL)))
		free(version);
	map_free(TAKE_PTR(p->versions));
}

void packages_free(struct packages *p)
{
	if (!p)
		return;
	drop_versions(p);
	str_list_free(p->patterns);
	free(p);
}

int package_normalise(const char *name, char ret_name[PACKAGE_NAME_MAX + 1])
{
	size_t n = 0;

	for (; *name; name++) {
		char c = (char)tolower((unsigned char)*name);

		if (strchr("-_.", c))
			c = '-';
		if (c == '-' && n > 0 && ret_name[n - 1] == '-')
			continue;
		if (n == PACKAGE_NAME_MAX)
			return -ENAMETOOLONG;
		ret_name[n++] = c;
	}
	ret_name[n] = '\0';
	return 0;
}

int package_parse_entry(const char *entry, char ret_name[PACKAGE_NAME_MAX + 1],
                        char ret_version[PACKAGE_VERSION_MAX + 1])
{
	cleanup_free char *text = xstrdup(entry);
	char *version = strchr(text, '-');
	char *dot = strrchr(text, '.');
	char *more;

	if (!version || version == text || !dot || dot < version ||
	    (!str_equal(dot, ".dist-info") && !str_equal(dot, ".egg-info")))
		return -EINVAL;
	*version++ = '\0';
	*dot = '\0';
	more = strstr(version, "-py");
	if (more)
		*more = '\0';
	if (!*version || str_copy(ret_version, PACKAGE_VERSION_MAX + 1, version) < 0)
		return -EINVAL;
	return package_normalise(text, ret_name) < 0 ? -EINVAL : 0;
}

static void add_directory(void *ctx, const char *path)
{
	struct packages *p = ctx;
	char name[PACKAGE_NAME_MAX + 1], version[PACKAGE_VERSION_MAX + 1];
	struct dirent **entries = NULL;
	int count = scandir(path, &entries, NULL, alphasort);

	for (int i = 0; i < count; i++) {
		if (package_parse_entry(entries[i]->d_name, name, version) == 0 &&
		    !map_get(p->versions, name))
			(void)!map_put(p->versions, name, xstrdup(version));
		free(entries[i]);
	}
	free(entries);
}

static void each_directory(const struct packages *p, void (*fn)(void *ctx, const char *path),
                           void *ctx)
{
	for (char **pattern = p->patterns; *pattern; pattern++) {
		glob_t found = {0};

		if (glob(*pattern, GLOB_ERR, NULL, &found) == 0)
			for (size_t i = 0; i < found.gl_pathc; i++)
				fn(ctx, found.gl_pathv[i]);
		globfree(&found);
	}
}

/* FNV-1a over what changes when an entry comes or goes. */
static void add_state(void *ctx, const char *path)
{
	uint64_t *state = ctx;
	struct stat st = {0};
	uint64_t numbers[4] = {0};
	const unsigned char *bytes = (const unsigned char *)numbers;

	if (stat(path, &st) < 0)
		return;
	numbers[0] = st.st_dev;
	numbers[1] = st.st_ino;
	numbers[2] = (uint64_t)st.st_mtim.tv_sec;
	numbers[3] = (uint64_t)st.st_mtim.tv_nsec;
	for (size_t i = 0; i < sizeof(numbers); i++)
		*state = (*state ^ bytes[i]) * 0x100000001b3;
}

void packages_refresh(struct packages *p)
{
	uint64_t state = 0xcbf29ce484222325;

	if (!p)
		return;
	each_directory(p, add_state, &state);
	if (p->versions && state == p->state)
		return;
	drop_versions(p);
	p->state = state;
	p->versions = map_new();
	each_directory(p, add_directory, p);
}

struct packages *packages_load(const char *const *patterns)
{
	struct packages *p = NEW(struct packages);

	p->patterns = str_list_copy((char *const *)(uintptr_t)patterns);
	packages_refresh(p);
	return p;
}

struct packages *packages_load_host(void)
{
	static const char *const patterns[] = {"/usr/local/lib/python3*/dist-packages",
	                                       "/usr/lib/python3/dist-packages", NULL};

	return packages_load(patterns);
}

const char *packages_find(const struct packages *p, const char *name)
{
	char normal[PACKAGE_NAME_MAX + 1];

	return p && package_normalise(name, normal) == 0 ? map_get(p->versions, normal) : NULL;
}

/* 0 if there is none; skips the dot. */
static unsigned long next_number(const char **at)
{
	unsigned long value = 0;

	for (; **at >= '0' && **at <= '9' && value < 100000000; (*at)++)
		value = value * 10 + (unsigned long)(**at - '0');
	if (**at == '.')
		(*at)++;
	return value;
}

/* Suffixes (rc1, +b1) decide only if all numbers are equal. */
static int compare_versions(const char *a, const char *b)
{
	while (isdigit((unsigned char)*a) || isdigit((unsigned char)*b)) {
		unsigned long x = next_number(&a);
		unsigned long y = next_number(&b);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return strcmp(a, b);
}

static bool fits_one(const char *version, const char *wanted, size_t len)
{
	static const struct {
		const char *word;
		bool less, equal, greater;
	} rows[] = {
		{"==", false, true, false}, {">=", false, true, true}, {"<=", true, true, false},
		{"!=", true, false, true},  {">", false, false, true}, {"<", true, false, false},
	};
	char text[PACKAGE_VERSION_MAX + 1];
	size_t row = 0, skip;
	int order;

	while (len > 0 && *wanted == ' ') {
		wanted++;
		len--;
	}
	if (len == 0)
		return true;
	if (len > PACKAGE_VERSION_MAX)
		return false;
	memcpy(text, wanted, len);
	text[len] = '\0';
	while (row < ARRAY_SIZE(rows) && !str_has_prefix(text, rows[row].word))
		row++;
	skip = row < ARRAY_SIZE(rows) ? strlen(rows[row].word) : 0;
	if (row == ARRAY_SIZE(rows))
		row = 0; /* a bare version means "==" */
	order = compare_versions(version, text + skip + strspn(text + skip, " "));
	return order < 0 ? rows[row].less : order > 0 ? rows[row].greater : rows[row].equal;
}

bool package_version_fits(const char *version, const char *wanted)
{
	for (;;) {
		size_t len = strcspn(wanted, ",");

		if (!fits_one(version, wanted, len))
			return false;
		if (!wanted[len])
			return true;
		wanted += len + 1;
	}
}
