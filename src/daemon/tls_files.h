/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's certificate and private key: read with the rights of the user who started it,
 * before they are dropped; read again on SIGHUP, when a tls_guard opens what the daemon cannot.
 */

#include "base/attr.h"
#include "base/error.h"

struct config;

/* Owned text; NULL: no TLS. */
struct tls_files {
	char *cert;
	char *key;
};

#define TLS_FILES_COUNT 2 /* certificate, key */
/** tls_files_open - a negative errno replaces a descriptor. */
void tls_files_open(const struct config *config, int ret_fds[TLS_FILES_COUNT]);
/**
 * tls_files_read - read and close @fds of tls_files_open. Checks that no other user may read the
 * key, and that key and certificate match. Return: 0, or -1 (ERR_CONFIG).
 */
int tls_files_read(const struct config *config, int fds[TLS_FILES_COUNT],
                   struct tls_files *ret_files, struct error *err) attr_must_check;
/** tls_files_load - empty if not configured; ERR_CONFIG. */
int tls_files_load(const struct config *config, struct tls_files *ret_files,
                   struct error *err) attr_must_check;
/** tls_files_done - wipes the key. */
void tls_files_done(struct tls_files *files);
