/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/spec.h"

#include <stdio.h>
#include <string.h>

#include "oci/runtimes.h"

/*
 * As root of the box's user namespace bwrap keeps the capabilities that it is told to keep; it sets
 * no_new_privs by itself. Its death and that of the agent end each other.
 */
static const char *const before[] = {
	"--die-with-parent",
	"--as-pid-1",
	"--unshare-pid",
	"--unshare-ipc",
	"--unshare-uts",
	"--hostname",
	"millibox",
	"--clearenv",
	"--cap-drop",
	"ALL",
	"--cap-add",
	"CAP_SETUID",
	"--cap-add",
	"CAP_SETGID",
	"--cap-add",
	"CAP_KILL",
	"--cap-add",
	"CAP_SETPCAP",
	"--dev-bind",
	PLACE_ROOT,
	"/",
	"--proc",
	"/proc",
};
static const char *const after[] = {"--remount-ro", "/proc", "--chdir", "/"};

static const char *const single[] = {"--unshare-user", "--uid", "1000", "--gid", "1000"};

static int add_word(struct buf *text, const char *word)
{
	return buf_add(text, word, strlen(word) + 1);
}

static int add_words(struct buf *text, const char *const *words, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r >= 0; i++)
		r = add_word(text, words[i]);
	return r;
}

static int add_mask(struct buf *text, const struct proc_mask *mask)
{
	/* Relative: the box's own, below its root. */
	bool is_own = mask->cover[0] != '/';
	char source[80], path[80];
	const char *words[] = {"--ro-bind", source, path};

	(void)snprintf(source, sizeof(source), "%s",
	               is_own ? PLACE_ROOT "/" PROC_BOOT_ID : mask->cover);
	(void)snprintf(path, sizeof(path), "/proc/%s", mask->name);
	return add_words(text, words, ARRAY_SIZE(words));
}

int spec_write_arguments(const struct spec *spec, struct buf *ret_text)
{
	int r = spec->is_single ? add_words(ret_text, single, ARRAY_SIZE(single)) : 0;

	if (r >= 0)
		r = add_words(ret_text, before, ARRAY_SIZE(before));
	for (size_t i = 0; i < spec->mask_count && r >= 0; i++)
		r = add_mask(ret_text, &spec->masks[i]);
	return r < 0 ? r : add_words(ret_text, after, ARRAY_SIZE(after));
}
