/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: certificate and private key of the daemon, read with the rights of whoever started it,
 * before they are given up.
 */

#include "base/attr.h"
#include "base/error.h"

struct config;

/* Owned text; NULL: no TLS. */
struct tls_files {
	char *cert;
	char *key;
};

/** tls_files_load - nothing where the settings name none; ERR_CONFIG where something is wrong. */
int tls_files_load(const struct config *config, struct tls_files *ret_files,
                   struct error *err) attr_must_check;
/** tls_files_done - the key does not stay in memory. */
void tls_files_done(struct tls_files *files);
