/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: hash-chained lines. Each is a JSON object that ends with the previous line's hash and its
 * own: BLAKE2b-256 of its bytes before ,"hash": so no canonical form is needed.
 *
 *   {"seq":2, <members> ,"prev":"<64 hex>","hash":"<64 hex>"}
 *
 * seq counts from 1 without gaps; the first prev is all zeros. Pure except chain_verify_*, which
 * read a file.
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

/* The end of a chain; zero: an empty chain. */
struct chain_head {
	uint64_t seq;
	uint8_t hash[CHAIN_HASH_LEN];
};

enum chain_fault {
	CHAIN_FINE,
	CHAIN_MALFORMED, /* not a line of a chain */
	CHAIN_TORN,      /* the last line is incomplete */
	CHAIN_BAD_SEQ,   /* missing, duplicated or out of order */
	CHAIN_BAD_PREV,  /* the line before was replaced */
	CHAIN_BAD_HASH,  /* the line was changed */
	CHAIN_CUT,       /* lines are missing at the end */
	CHAIN_BAD_HEAD,  /* of another chain, or malformed */
	CHAIN_FAULT_COUNT
};

const char *chain_fault_text(enum chain_fault fault);

/**
 * chain_add - append the next line and advance @head. @members: JSON members without braces, one
 * line. Return: 0, or -ENOBUFS or -EMSGSIZE (over CHAIN_LINE_MAX) with nothing added.
 */
int chain_add(struct chain_head *head, const char *members, size_t len,
              struct buf *b) attr_must_check;
/**
 * chain_check - whether @line (without newline) follows @head. @head NULL: a file's first line;
 * only its own hash is checked. Sets @ret_head for every well-formed line.
 */
enum chain_fault chain_check(const struct chain_head *head, const char *line, size_t len,
                             struct chain_head *ret_head) attr_must_check;
/** chain_head_print / _parse - "seq hash", fixed length, as stored beside the lines. */
void chain_head_print(const struct chain_head *head, char ret_text[CHAIN_HEAD_LEN + 1]);
int chain_head_parse(const char *text, size_t len, struct chain_head *ret_head) attr_must_check;

#define CHAIN_WATCHES 2

/* Of one file, or several consecutive ones. */
struct chain_verdict {
	enum chain_fault fault;
	uint64_t records;       /* valid ones before the fault */
	uint64_t first_seq;     /* of the first valid one; 0: none */
	struct chain_head head; /* of the last valid one */
	uint64_t bad_line;      /* in the file, from 1; 0: no particular line */
	uint64_t good_bytes;    /* of the file, before the fault */
	/* Set by the caller: copy the records with these seqs to @watched. 0: none. */
	uint64_t watch_seq[CHAIN_WATCHES];
	struct chain_head watched[CHAIN_WATCHES];
};

/**
 * chain_verify_fd - verify @fd from its start, continuing from *verdict (zero at first), so that
 * consecutive files can be verified one by one. Constant memory. Return: 0, or the negative errno
 * of a read.
 */
int chain_verify_fd(int fd, struct chain_verdict *verdict) attr_must_check;
/** chain_verify_head - check that the chain reaches @head, whose seq was in watch_seq. */
void chain_verify_head(const struct chain_head *head, struct chain_verdict *verdict);
