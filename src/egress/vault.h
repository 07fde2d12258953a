/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the secrets of one box, and what they change in its requests. A secret names its hosts: with
 * "https" it is added only to requests inside TLS, with "http" only to plain ones. Nothing else of
 * a request decides, so code cannot send it elsewhere. Pure; values are wiped when freed.
 *
 *   header       the request gets the header; one that the code sent is dropped
 *   placeholder  in that header, the placeholder is replaced by the value
 *
 * A request to such a host gets "Accept-Encoding: identity", and struct scrub overwrites the values
 * in what the server answers, in case that it sends them back.
 */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "egress/head.h"
#include "egress/order.h"
#include "egress/target.h"
#include <stdbool.h>
#include <stddef.h>

#define VAULT_HOSTS     16
#define VAULT_VALUE_MIN 8
#define VAULT_VALUE_MAX 4096
#define VAULT_TEXT_MAX  256
/* Of a request. */
#define VAULT_PLACEHOLDERS 4

struct vault;

void vault_free(struct vault *v);
void vault_freep(struct vault **v);
#define cleanup_vault attr_cleanup(vault_freep)
/**
 * vault_parse - @count secrets as order.h describes them, in @len bytes that they fill. Return:
 * NULL with *err; the message has no part of a value.
 */
struct vault *vault_parse(const char *data, size_t len, uint32_t count, struct error *err)
	attr_owned(vault_free);
/** vault_covers - whether a secret is for this host. NULL has none. */
bool vault_covers(const struct vault *v, const struct target *target, bool is_tls);
/** vault_write - head_write_origin() with the secrets for this host. Return: 0, -ENOBUFS, or
 * -E2BIG: more than VAULT_PLACEHOLDERS. */
int vault_write(const struct vault *v, const struct head *head, bool is_tls,
                struct buf *to) attr_must_check;
/* Answers. */

struct scrub;

void scrub_free(struct scrub *s);
/** scrub_new - for the values of the secrets for this host, which are copied. Return: NULL: memory
 * is out. */
struct scrub *scrub_new(const struct vault *v, const struct target *target, bool is_tls)
	attr_owned(scrub_free);
/** scrub_bytes - memory that @s (may be NULL) holds. */
size_t scrub_bytes(const struct scrub *s);
/**
 * scrub_feed - append @data to @to with each value overwritten by asterisks, so that no length
 * changes; of values that overlap each. What may be the start of a value is kept until more comes;
 * @is_end: nothing comes. Return: 0 or -ENOBUFS.
 */
int scrub_feed(struct scrub *s, const char *data, size_t len, bool is_end,
               struct buf *to) attr_must_check;
