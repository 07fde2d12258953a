/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: images become templates. The archive is handed on as it comes to millibox-import, which was
 * started with the daemon and is the only one that looks into it; the daemon reads its short
 * answer. One import: imports_begin, import_write..., import_end, and then exactly one of the two
 * events, from the loop; or import_cancel, and none.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>

struct import;
struct imports;
struct loop;
struct template;
struct templates;

struct imports_config {
	struct loop *loop;
	struct templates *templates;
	const char *roots; /* directory of imported roots */
	int sock;          /* of millibox-import, taken; -1: it could not be started */
};

struct import_events {
	void *ctx;
	void (*on_room)(void *ctx); /* more can be written */
	void (*on_done)(void *ctx, struct template *t);
	void (*on_failed)(void *ctx, const struct error *err);
};

/* All borrowed. */
struct import_request {
	const char *tenant, *id, *name; /* @name NULL: the id */
};

/** imports_free - what is under way is cancelled; no callback follows. */
void imports_free(struct imports *all);
/** imports_new - removes roots that no template has: an import whose end nobody wrote down. */
struct imports *imports_new(const struct imports_config *config) attr_owned(imports_free);

int imports_begin(struct imports *all, const struct import_request *request,
                  const struct import_events *events, struct import **ret_import,
                  struct error *err) attr_must_check;
/** import_write - Return: how many bytes were taken; when not all, on_room follows. */
size_t import_write(struct import *i, const char *data, size_t len);
void import_end(struct import *i);
void import_cancel(struct import *i);
