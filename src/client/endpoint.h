/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: where the daemon is: by options, else environment, else the default socket. */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <sys/types.h>

/* Remedies, in the words of the caller's interface. */
struct endpoint_words {
	const char *both;      /* socket and URL given */
	const char *untrusted; /* a certificate */
	const char *unreached; /* nothing listens where the caller said */
	const char *missing;   /* nothing listens at the default socket */
};

/* NULL: not given. */
struct endpoint_options {
	const char *socket;
	const char *url;
	const char *ca_file;
	const char *key;                    /* before the environment's */
	const struct endpoint_words *words; /* NULL: the library's */
};

/* All inputs of the choice; NULL or "": not set. */
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
	char *url;     /* owned; no trailing slash */
	bool chosen;   /* by the user: use no other daemon */
	bool barred;   /* the system's daemon does not let this user connect */
	char *key;     /* owned; NULL: none */
	char *ca_file; /* owned; NULL: the system's */
	const struct endpoint_words *words;
	struct http_client *kept; /* borrowed: its connection; NULL: one for each request */
};

/* Of a daemon that root started: systemd's, and by default any. */
#define ENDPOINT_SYSTEM "/run/millibox/millibox.sock"

/* Initialisers of a struct http_client_request. */
#define ENDPOINT_REQUEST(endpoint)                                                                 \
	.socket_path = (endpoint)->socket, .bearer = (endpoint)->key,                              \
	.ca_file = (endpoint)->ca_file, .untrusted = endpoint_words(endpoint)->untrusted,          \
	.unreached = endpoint_words(endpoint)->unreached, .kept = (endpoint)->kept

/**
 * endpoint_find - endpoint_choose with @options and the environment. If no daemon of the user's own
 * listens at its default socket, that of the system is chosen if it lets this user connect.
 */
int endpoint_find(const struct endpoint_options *options, struct endpoint *ret_endpoint,
                  struct error *err) attr_must_check;
/** endpoint_choose - reads only the key file. Return: 0, or -1 (ERR_INVALID). */
int endpoint_choose(const struct endpoint_source *source, struct endpoint *ret_endpoint,
                    struct error *err) attr_must_check;
/** endpoint_words - never NULL. */
const struct endpoint_words *endpoint_words(const struct endpoint *endpoint);
void endpoint_done(struct endpoint *endpoint);
#define cleanup_endpoint attr_cleanup(endpoint_done)
/**
 * endpoint_use_system - choose the socket @path if a daemon listens there and only @owner can have
 * put it there. Return: 0; or -EPERM: untrusted, or another errno.
 */
int endpoint_use_system(struct endpoint *endpoint, const char *path, uid_t owner) attr_must_check;
/** endpoint_dial - Return: a connected socket, or a negative errno. */
int endpoint_dial(const char *path) attr_must_check;
/** endpoint_connect - does anything listen? Return: 0, or a negative errno. */
int endpoint_connect(const char *path) attr_must_check;
/**
 * endpoint_is_served - does a trustworthy daemon listen there? Not if another user could have made
 * the directory.
 */
bool endpoint_is_served(const struct endpoint *endpoint);
