/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "zygote/zygote.h"

/*
 * Theory of operation. fork() does not copy page tables of file mappings: a child faults for every
 * 16 pages of the interpreter that it touches, and unmaps them one by one at exit. Anonymous memory
 * is copied at the fork, and a huge page is a single entry. So the program's code and constants,
 * which are never written, move into huge pages at their old addresses.
 *
 * A huge page has one protection, so constants beside code become executable; the payload may
 * execute anything anyway. A block that is mostly code gets its old protections back, which makes
 * the kernel use small pages: half as good for the fork, but otherwise programs that mainly do
 * system calls were 5 % slower (docs/internals/zygote.md).
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

static struct span span_of(const struct dl_phdr_info *info, const ElfW(Phdr) * part)
{
	uintptr_t start = info->dlpi_addr + part->p_vaddr;

	return (struct span){.start = start & ~(PAGE - 1),
	                     .end = (start + part->p_filesz + PAGE - 1) & ~(PAGE - 1)};
}

static bool is_constant(const ElfW(Phdr) * part)
{
	return part->p_type == PT_LOAD && (part->p_flags & (PF_R | PF_W)) == PF_R;
}

/* The first contiguous read-only segments. */
static struct span find_constant(const struct dl_phdr_info *info)
{
	struct span all = {0};

	for (int i = 0; i < info->dlpi_phnum; i++) {
		struct span one = span_of(info, &info->dlpi_phdr[i]);

		if (!is_constant(&info->dlpi_phdr[i]))
			continue;
		if (all.end == 0)
			all = one;
		else if (all.end != one.start)
			break;
		all.end = one.end;
	}
	return all;
}

/* Maps two and keeps the aligned one. */
static void *copy_into_huge(const void *from)
{
	const int kind = MAP_PRIVATE | MAP_ANONYMOUS;
	// cppcheck-suppress invalidFunctionArg ; no file
	uint8_t *room = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, kind, -1, 0);
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

static struct span overlap(struct span a, struct span b)
{
	return (struct span){.start = a.start > b.start ? a.start : b.start,
	                     .end = a.end < b.end ? a.end : b.end};
}

static bool is_mostly_code(const struct dl_phdr_info *info, struct span block)
{
	uintptr_t code = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		struct span common = overlap(span_of(info, part), block);

		if (is_constant(part) && part->p_flags & PF_X && common.start < common.end)
			code += common.end - common.start;
	}
	return code > HUGE / 2;
}

static int set_protection(struct span span, int protection)
{
	// NOLINTNEXTLINE(performance-no-int-to-ptr): an address of a header
	return mprotect((void *)span.start, span.end - span.start, protection);
}

/* The first page differs for a moment, which makes the kernel split the huge mapping for good. */
static int restore_protection(const struct dl_phdr_info *info, struct span block)
{
	int r = set_protection((struct span){block.start, block.start + PAGE}, PROT_READ);

	for (int i = 0; r == 0 && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		struct span common = overlap(span_of(info, part), block);

		if (is_constant(part) && common.start < common.end)
			r = set_protection(common, part->p_flags & PF_X ? PROT_READ | PROT_EXEC
			                                                : PROT_READ);
	}
	return r;
}

/* Return: whether a huge page was available. */
static bool move_block(const struct dl_phdr_info *info, struct span block)
{
	void *place = (void *)block.start; // NOLINT(performance-no-int-to-ptr): the same
	void *copy = copy_into_huge(place);

	if (!copy)
		return false;
	if (mremap(copy, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == MAP_FAILED) {
		if (errno != EPERM)
			_exit(1);         /* the old mapping may be gone */
		(void)munmap(copy, HUGE); /* it was sealed */
		return false;
	}
	if (is_mostly_code(info, block) && restore_protection(info, block) < 0)
		_exit(1);
	return true;
}

/* Called for the program first; 1 stops the iteration. */
static int move_text(struct dl_phdr_info *info, size_t size attr_unused, void *data attr_unused)
{
	struct span all = find_constant(info);
	struct span block = {.start = (all.start + HUGE - 1) & ~(HUGE - 1)};

	block.end = block.start + HUGE;
	/* Without huge pages, children use the file mapping. */
	while (block.end <= all.end && move_block(info, block)) {
		block.start += HUGE;
		block.end += HUGE;
	}
	return 1;
}

void zygote_move_text(void)
{
	if ((uintptr_t)sysconf(_SC_PAGESIZE) == PAGE)
		(void)dl_iterate_phdr(move_text, NULL);
}
