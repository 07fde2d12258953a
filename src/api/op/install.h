/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: an HTTP request that needs packages: it waits for their layer, then goes on. With a stream,
 * the output of the package manager comes as events "install". A client that leaves gives up.
 *
 * On the loop only.
 */

#include "api/op/install_stream.h"
#include "base/error.h"
#include "core/install/install.h"
#include <stdbool.h>

struct http_request;
struct layer;
struct router;
struct template;

struct op_install {
	enum event_form form; /* NONE: no events */
	void *ctx;
	/* The layer is there: go on, perhaps with the stream that began. */
	void (*then)(void *ctx, struct http_request *req, struct layer *layer,
	             struct install_stream *stream);
	/* It failed, before a stream began. Return: whether this answered. NULL: no. */
	bool (*failed)(void *ctx, struct http_request *req, const struct error *err);
	/* It failed and was answered, or the client has left: free @ctx. */
	void (*drop)(void *ctx);
};

/** op_install - exactly one of @how's functions is called, now or later. */
void op_install(struct router *r, struct http_request *req, const struct install_request *request,
                const struct op_install *how);

/**
 * op_root_lacks - @language NULL: any. Return: index of the first of @packages that is not in the
 * root of @t (NULL: the host's); -1: it has all.
 */
ssize_t op_root_lacks(const struct router *r, const char *language, const struct template *t,
                      char *const *packages);

/** op_hides_host - whether boxes of @t have a layer for @language that hides what the host has. */
bool op_hides_host(const struct router *r, const char *language, const struct template *t);
/** op_box_lacks - as op_root_lacks, for boxes of @t: nothing of a hidden host counts. */
ssize_t op_box_lacks(const struct router *r, const char *language, const struct template *t,
                     char *const *packages);

/* Borrowed. */
struct op_packages {
	const char *language;
	char *const *packages;           /* may be NULL */
	const char *lock;                /* may be NULL */
	const struct template *template; /* NULL: the host's root */
};
/**
 * op_packages_lacking - whether an installation is needed. Return: 0: the root has all; 1; -1:
 * ERR_INVALID: needed, and cannot be.
 */
int op_packages_lacking(const struct router *r, const struct op_packages *wanted,
                        struct error *err) attr_must_check;
/**
 * op_packages_join - add to @packages (owned, of a request that needs an installation) those that
 * the template names: their layer is replaced, and those of the host are hidden. Return: the script
 * that ran in that layer, borrowed; NULL: none.
 */
const char *op_packages_join(const struct router *r, const struct op_packages *wanted,
                             char ***packages);
/** op_template_with - @base (NULL: the host's root) with @layer, for @tenant. A reference. */
struct template *op_template_with(const struct router *r, const char *tenant,
                                  const struct template *base, char *const *packages,
                                  const struct layer *layer) attr_must_check;
