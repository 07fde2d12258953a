/* SPDX-License-Identifier: Apache-2.0 */
/* Headers and pax records of any bytes: names stay inside, and what is read can be written. */
#include <string.h>

#include "fuzz.h"
#include "guest/tar.h"

static struct tar_entry entry;
static uint8_t blocks[TAR_HEADERS_MAX];

static void check_name(char *name)
{
	if (tar_clean_name(name) < 0)
		return;
	require(name[0] != '/' && strlen(name) <= TAR_NAME_MAX);
	for (const char *part = name; part; part = strchr(part, '/')) {
		part += part != name;
		require(strncmp(part, "../", 3) != 0 && strcmp(part, "..") != 0);
		require(name[0] == '\0' || (*part != '\0' && *part != '/'));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < TAR_BLOCK)
		return 0;
	memset(&entry, 0, sizeof(entry));
	if (tar_read(data, &entry) == 0 && entry.kind <= TAR_HARDLINK)
		require(tar_write(&entry, blocks) > 0);
	/* The checksum is hard to guess: the rest is tried without it, too. */
	if (tar_read_pax((const char *)data + TAR_BLOCK, size - TAR_BLOCK, &entry) < 0)
		return 0;
	require(strlen(entry.name) <= TAR_NAME_MAX && strlen(entry.link) <= TAR_NAME_MAX);
	check_name(entry.name);
	if (tar_link_stays(entry.name, entry.link))
		require(entry.link[0] != '/');
	return 0;
}
