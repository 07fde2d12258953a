/* SPDX-License-Identifier: Apache-2.0 */
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "zygote/zygote.h"

/*
 * Theory of operation. A child has none of the zygote's page tables for files: it takes a fault for
 * every 16 pages of the interpreter that it comes to, and gives them back one by one when it ends.
 * Memory of the zygote's own is different: of a huge page the fork copies one entry, which serves
 * all children. So the program's code and constants, which nobody writes to, are copied into such
 * pages and moved to where they were. Both in one mapping, because a huge page has one set of
 * rights: constants can be executed, in a process that may execute whatever it likes.
 */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define PAGE ((uintptr_t)4096)
#define HUGE ((uintptr_t)2 << 20) /* with pages of 4 KiB */

struct span {
	uintptr_t start;
	uintptr_t end;
};

/* Called for the program first, which is enough. */
static int find_constant(struct dl_phdr_info *info, size_t size attr_unused, void *data)
{
	struct span *span = data;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = (info->dlpi_addr + part->p_vaddr) & ~(PAGE - 1);
		uintptr_t end =
			(info->dlpi_addr + part->p_vaddr + part->p_filesz + PAGE - 1) & ~(PAGE - 1);

		if (part->p_type != PT_LOAD || part->p_flags & PF_W)
			continue;
		if (span->end != start && span->end != 0)
			break; /* a gap */
		if (span->end == 0)
			span->start = start;
		span->end = end;
	}
	return 1;
}

/* Huge pages begin at multiples of their size: room for two has one. */
static void *copy_into_huge(const void *from)
{
	uint8_t *room =
		mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *copy = (uint8_t *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1));

	if (room == MAP_FAILED)
		return NULL;
	if (copy > room)
		(void)munmap(room, (size_t)(copy - room));
	if (copy < room + HUGE)
		(void)munmap(copy + HUGE, (size_t)(room + HUGE - copy));
	memcpy(copy, from, HUGE);
	if (madvise(copy, HUGE, MADV_COLLAPSE) == 0 &&
	    mprotect(copy, HUGE, PROT_READ | PROT_EXEC) == 0)
		return copy;
	(void)munmap(copy, HUGE);
	return NULL;
}

void zygote_settle_text(void)
{
	struct span span = {0};

	if ((uintptr_t)sysconf(_SC_PAGESIZE) != PAGE)
		return;
	(void)dl_iterate_phdr(find_constant, &span);
	for (uintptr_t at = (span.start + HUGE - 1) & ~(HUGE - 1); at + HUGE <= span.end;
	     at += HUGE) {
		void *place =
			(void *)at; // NOLINT(performance-no-int-to-ptr): from the program's headers
		void *copy = copy_into_huge(place);

		/* None to be had: children read the file, as others do. */
		if (!copy)
			return;
		if (mremap(copy, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED)
			_exit(1);
	}
}
