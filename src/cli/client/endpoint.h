/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: where the daemon is: what was asked for, else the environment, else the default socket. */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <sys/types.h>

/* What the command line says of it; NULL: nothing. */
struct endpoint_options {
	const char *socket;
	const char *url;
	const char *ca_file;
};

/* What to do about a daemon whose certificate nobody vouches for. */
#define ENDPOINT_UNTRUSTED "give the certificate of who signed it with --ca-file"

/* What to do where no daemon is. */
#define ENDPOINT_UNREACHED "start milliboxd there, or leave out --socket and --url"

/* Everything the choice depends on; NULL or "" where it is not there. */
struct endpoint_source {
	struct endpoint_options options;
	const char *env_socket;
	const char *env_url;
	const char *env_runtime_dir;
	const char *env_key;      /* MILLIBOX_API_KEY */
	const char *env_key_file; /* MILLIBOX_API_KEY_FILE */
	const char *env_ca_file;  /* MILLIBOX_CA_FILE */
	uid_t uid;
};

struct endpoint {
	char *socket;  /* owned; NULL: TCP */
	char *url;     /* owned; without a slash at its end */
	bool chosen;   /* somebody named it: nothing else may take its place */
	char *key;     /* owned; NULL: none */
	char *ca_file; /* owned; NULL: the system's authorities */
};

/** endpoint_find - by @options and the environment: endpoint_choose. */
int endpoint_find(const struct endpoint_options *options, struct endpoint *ret_endpoint,
                  struct error *err) attr_must_check;
/** endpoint_choose - pure, but that a file with a key is read. Return: 0, or -1 (ERR_INVALID). */
int endpoint_choose(const struct endpoint_source *source, struct endpoint *ret_endpoint,
                    struct error *err) attr_must_check;
void endpoint_done(struct endpoint *endpoint);
#define cleanup_endpoint attr_cleanup(endpoint_done)
/** endpoint_connect - does somebody listen at the Unix socket @path? Return: 0 or a negative errno.
 */
int endpoint_connect(const char *path) attr_must_check;
/**
 * endpoint_is_served - whether a daemon that may be trusted listens at @endpoint's socket. A socket
 * in a directory that another user could have made is not believed.
 */
bool endpoint_is_served(const struct endpoint *endpoint);
