/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: gets a layer with the packages that a caller wants: from the cache (core/template/layers.h),
 * from an installation of the same that runs already, or from a new one. Installations are bounded
 * in number, time, memory and size; beyond packages.max_installs they wait.
 *
 * Owned by the daemon; on the loop only.
 */

#include "base/attr.h"
#include "base/error.h"
#include "core/template/wanted.h"
#include "driver/box_spec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct audit;
struct config;
struct driver;
struct image;
struct imports;
struct install;
struct installs;
struct layer;
struct layers;
struct loop;
struct metrics;
struct run_service;
struct runner;
struct runners;
struct template;
struct template_spec;

/* Borrowed; must outlive it. */
struct installs_config {
	const struct config *config;
	struct driver *driver;
	struct run_service *runs;
	const struct runners *runners;
	struct imports *imports;
	struct layers *layers;
	struct loop *loop;
	struct metrics *metrics;       /* NULL: metrics off */
	struct audit *audit;           /* NULL: audit off */
	const char *const *registries; /* one per manager, in the order of manager_at */
};

/* Where the installed tree goes instead of a layer, as tar; copied. */
struct install_sink {
	void *ctx;
	/* Installed, as @lock says; the tree follows, of at most @max_bytes. -1: *err. */
	int (*open)(void *ctx, const char *lock, uint64_t max_bytes, struct error *err);
	/* Return: bytes taken; if not all, install_room follows. */
	size_t (*write)(void *ctx, const char *data, size_t len);
	/* All was written: install_sunk follows. */
	void (*end)(void *ctx);
};

/* Borrowed for the call. */
struct install_request {
	const char *tenant, *request_id, *key_id, *policy; /* the last three may be NULL */
	const char *language;            /* its manager is used, unless @manager names one */
	const char *manager;             /* may be NULL */
	char *const *packages;           /* may be NULL */
	const char *lock;                /* text; may be NULL */
	const char *run;                 /* script of the shell, after that; may be NULL */
	const struct template *template; /* whose root; NULL: the host's */
	const char *engine;              /* of the box that gets them; NULL: any */
	enum box_grade min_isolation;    /* of that box */
	const struct install_sink *sink; /* NULL: a layer */
	bool is_library;                 /* installs_library */
};

/* From the loop. Exactly one of on_done and on_failed ends it. */
struct install_events {
	void *ctx;
	/* What the package manager prints. May be NULL. */
	void (*on_output)(void *ctx, const char *data, size_t len);
	void (*on_done)(void *ctx, struct layer *layer); /* NULL: it went to the sink */
	/* @log: the last output of the package manager; "": none. */
	void (*on_failed)(void *ctx, const struct error *err, const char *log);
};

void installs_free(struct installs *all);
struct installs *installs_new(const struct installs_config *config) attr_owned(installs_free);
/** installs_stop - fail all; accept no more. @all may be NULL. */
void installs_stop(struct installs *all);
/**
 * installs_begin - Return: 0: @ret_install, and an event follows; 1: *ret_layer is there; -1:
 * ERR_INVALID with the field, ERR_DENIED, ERR_BUSY.
 */
int installs_begin(struct installs *all, const struct install_request *request,
                   const struct install_events *events, struct install **ret_install,
                   struct layer **ret_layer, struct error *err) attr_must_check;
/** install_cancel - no event follows. The last caller's end ends the installation. */
void install_cancel(struct install *install);
/** install_room - the sink takes bytes again. */
void install_room(struct install *install);
/** install_sunk - the sink has the whole tree, or failed with *err. May be called at any time after
 * sink.open. */
void install_sunk(struct install *install, const struct error *err);
/** installs_can - whether @language has a manager that the operator enabled. */
bool installs_can(const struct installs *all, const char *language);
struct layers *installs_layers(const struct installs *all);
/** installs_fill - what a template says about a layer; owned by @ret_spec. */
void installs_fill(const struct layer *layer, struct template_spec *ret_spec);
/**
 * installs_library - a run_library_fn; @ctx: the installs. The tree is made once for a toolchain,
 * in the background, whatever policies say about packages: nothing in it comes from a registry or a
 * tenant, so that all tenants with this root share it.
 */
struct image *installs_library(void *ctx, struct template *t, const struct runner *r);
/** installs_measure - a metrics source; @ctx: the installs. */
void installs_measure(void *ctx, struct metrics *m);
