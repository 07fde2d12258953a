/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: certificate and private key of the daemon: read with the rights of whoever started it,
 * before they are given up; read again on SIGHUP, where a tls_guard opens what the daemon itself
 * may not open any more.
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
/** tls_files_open - what the settings name; a negative errno in the place of what cannot be. */
void tls_files_open(const struct config *config, int ret_fds[TLS_FILES_COUNT]);
/**
 * tls_files_read - what tls_files_open left in @fds, all of which it closes. Checked whole: that
 * nobody else may read the key, and that both belong together. Return: 0, or -1 (ERR_CONFIG).
 */
int tls_files_read(const struct config *config, int fds[TLS_FILES_COUNT],
                   struct tls_files *ret_files, struct error *err) attr_must_check;
/** tls_files_load - nothing where the settings name none; ERR_CONFIG where something is wrong. */
int tls_files_load(const struct config *config, struct tls_files *ret_files,
                   struct error *err) attr_must_check;
/** tls_files_done - the key does not stay in memory. */
void tls_files_done(struct tls_files *files);
