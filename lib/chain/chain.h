/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: lines that hold each other: each is a JSON object that ends with the hash of the line before
 * and its own. Its own is BLAKE2b-256 of its bytes up to and not including ,"hash": so nothing has
 * to be brought into a canonical form, and no byte of a line can change unseen:
 *
 *   {"seq":2, <members> ,"prev":"<64 hex>","hash":"<64 hex>"}
 *
 * seq counts from 1 without gaps; the first line's prev is all zeros. Pure but for chain_verify_*,
 * which read.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

#define CHAIN_HASH_LEN 32
#define CHAIN_HEX_LEN  (2 * CHAIN_HASH_LEN)
#define CHAIN_LINE_MAX (64u << 10)
#define CHAIN_HEAD_LEN (20 + 1 + CHAIN_HEX_LEN + 1) /* as text */

/* Where a chain ends; zero: nothing is there yet. */
struct chain_head {
	uint64_t seq;
	uint8_t hash[CHAIN_HASH_LEN];
};

enum chain_fault {
	CHAIN_FINE,
	CHAIN_MALFORMED, /* not a line of this form */
	CHAIN_TORN,      /* the last line has no end: it was being written when something ended */
	CHAIN_BAD_SEQ,   /* a line is missing, there twice or in another place */
	CHAIN_BAD_PREV,  /* the line before is not the one that was there */
	CHAIN_BAD_HASH,  /* the line itself was changed */
	CHAIN_CUT,       /* lines are missing at the end: the head knows of more */
	CHAIN_BAD_HEAD,  /* the head is of another chain, or is not one */
	CHAIN_FAULT_COUNT
};

/** chain_fault_text - for a person. */
const char *chain_fault_text(enum chain_fault fault);

/**
 * chain_add - the next line of @head, which moves on. @members: JSON members without braces, one
 * line. Return: 0, or -ENOBUFS or -EMSGSIZE (a line of more than CHAIN_LINE_MAX) with nothing
 * added.
 */
int chain_add(struct chain_head *head, const char *members, size_t len,
              struct buf *b) attr_must_check;
/**
 * chain_check - whether @line (without its end) is the next one of @head. With @head NULL its own
 * hash counts alone: it begins a file. @ret_head is set for everything that is well-formed.
 */
enum chain_fault chain_check(const struct chain_head *head, const char *line, size_t len,
                             struct chain_head *ret_head) attr_must_check;
/** chain_head_print / _parse - "seq hash" with fixed length, as it is kept beside the lines. */
void chain_head_print(const struct chain_head *head, char ret_text[CHAIN_HEAD_LEN + 1]);
int chain_head_parse(const char *text, size_t len, struct chain_head *ret_head) attr_must_check;

#define CHAIN_WATCHES 2

/* What was found in a file, or in several that follow each other. */
struct chain_verdict {
	enum chain_fault fault;
	uint64_t records;       /* good ones, before the fault */
	uint64_t first_seq;     /* of the first good one; 0: none */
	struct chain_head head; /* of the last good one */
	uint64_t bad_line;      /* of the file, from 1; 0: no line in particular */
	uint64_t good_bytes;    /* of the file, up to the fault */
	/* Set by the caller: the records of these numbers go into @watched. 0: none. */
	uint64_t watch_seq[CHAIN_WATCHES];
	struct chain_head watched[CHAIN_WATCHES];
};

/**
 * chain_verify_fd - from the beginning of @fd to its end, going on from *verdict (zero at first),
 * so that files can be verified one after the other. A line is never held whole with its
 * neighbours: memory is constant. Return: 0 with the verdict, or a negative errno of reading.
 */
int chain_verify_fd(int fd, struct chain_verdict *verdict) attr_must_check;
/** chain_verify_head - the chain must have what its head knows; one of watch_seq was the head's
 * before the files were read. @verdict is amended. */
void chain_verify_head(const struct chain_head *head, struct chain_verdict *verdict);
