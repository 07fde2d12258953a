/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/netkept.h"

#include <assert.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/fd.h"

#define FILES_PER_ENTRY (NETTRACES_FILES + 1)
/* What the helper has open besides: streams, sockets, what it is just working on. */
#define FILES_OWN 64

static_assert(NETKEPT_MAX * FILES_PER_ENTRY + FILES_OWN <= 1024, "the usual limit");

/* A helper that has used up its descriptors could make no namespace at all. */
static size_t room_for_files(void)
{
	struct rlimit files = {.rlim_cur = 0};

	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < FILES_OWN + FILES_PER_ENTRY)
		return 1;
	if (files.rlim_cur >= FILES_OWN + NETKEPT_MAX * FILES_PER_ENTRY)
		return NETKEPT_MAX;
	return (size_t)(files.rlim_cur - FILES_OWN) / FILES_PER_ENTRY;
}

void netkept_init(struct netkept *kept)
{
	*kept = (struct netkept){.room = room_for_files()};
	for (size_t i = 0; i < NETKEPT_MAX; i++)
		kept->all[i].net = -1;
}

struct netkept_one *netkept_find(struct netkept *kept, int net)
{
	struct stat st;

	if (fstat(net, &st) < 0)
		return NULL;
	for (size_t i = 0; i < kept->room; i++) {
		struct netkept_one *one = &kept->all[i];

		if (one->net < 0 || one->ino != st.st_ino || one->dev != st.st_dev)
			continue;
		one->seen = ++kept->now;
		return one;
	}
	return NULL;
}

/* Unused or the one that was seen least lately. */
static struct netkept_one *make_room(struct netkept *kept)
{
	struct netkept_one *oldest = &kept->all[0];

	for (size_t i = 0; i < kept->room && oldest->net >= 0; i++)
		if (kept->all[i].net < 0 || kept->all[i].seen < oldest->seen)
			oldest = &kept->all[i];
	netkept_drop(oldest);
	return oldest;
}

struct netkept_one *netkept_add(struct netkept *kept, int net)
{
	struct netkept_one *one = make_room(kept);
	struct stat st;

	if (fstat(net, &st) < 0 || nettraces_open(&one->traces) < 0)
		return NULL;
	/* What makes a number an identity is not left to what the files happen to hold. */
	one->net = fd_dup(net);
	if (one->net < 0) {
		one->net = -1;
		nettraces_close(&one->traces);
		return NULL;
	}
	one->dev = st.st_dev;
	one->ino = st.st_ino;
	one->seen = ++kept->now;
	return one;
}

void netkept_drop(struct netkept_one *one)
{
	if (!one || one->net < 0)
		return;
	nettraces_close(&one->traces);
	one->net = fd_close(one->net);
}

void netkept_drop_all(struct netkept *kept)
{
	for (size_t i = 0; i < kept->room; i++)
		netkept_drop(&kept->all[i]);
}
