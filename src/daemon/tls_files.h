/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's certificate and private key: read with the rights of the user who started it,
 * before they are dropped; read again on SIGHUP, when a tls_guard opens what the daemon itself
 * can no longer open.
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
/** tls_files_open - open the configured files; a negative errno takes the place of a descriptor. */
void tls_files_open(const struct config *config, int ret_fds[TLS_FILES_COUNT]);
/**
 * tls_files_read - read @fds from tls_files_open, and close them. Checks that no other user may
 * read the key, and that key and certificate match. Return: 0, or -1 (ERR_CONFIG).
 */
int tls_files_read(const struct config *config, int fds[TLS_FILES_COUNT],
                   struct tls_files *ret_files, struct error *err) attr_must_check;
/** tls_files_load - empty if none are configured; ERR_CONFIG on errors. */
int tls_files_load(const struct config *config, struct tls_files *ret_files,
                   struct error *err) attr_must_check;
/** tls_files_done - wipes the key from memory. */
void tls_files_done(struct tls_files *files);
