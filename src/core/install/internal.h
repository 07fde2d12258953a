/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: shared by the files of this folder. */

#include "base/buf.h"
#include "base/list.h"
#include "core/install/install.h"
#include "core/policy/policy.h"
#include "core/tenant/principal.h"
#include "core/tenant/scheduler.h"
#include "driver/driver.h"

struct import;
struct manager;
struct timer;

#define INSTALL_LOG_MAX  (16u * 1024)
#define INSTALL_LOCK_MAX (1024u * 1024)
#define INSTALL_TEXT_MAX 200 /* of an installer's own words about a failure */
#define LIBRARY_FAILURES 8

enum packing_state {
	PACKING_QUEUED,  /* behind other installations */
	PACKING_WAITING, /* for the scheduler */
	PACKING_RUNNING, /* the installer */
	PACKING_SENDING, /* its tree, to the importer */
	PACKING_ENDED,   /* its box goes down */
	PACKING_STATE_COUNT
};

struct packing {
	struct list node; /* installs.packings, oldest first */
	struct installs *owner;
	struct list waiters; /* struct install.node */
	enum packing_state state;
	struct wanted wanted;
	char tenant[TENANT_NAME_MAX + 1];
	char *request_id, *key_id; /* owned; may be NULL */
	struct policy_decision decision;
	struct scheduler_entry entry;
	struct tenant *account;   /* held; NULL: no quotas */
	struct image *image;      /* a reference: the root of its box; NULL: none */
	struct box *box;          /* owned */
	struct box_file *file;    /* the tree; NULL: none */
	struct import *import;    /* NULL: none */
	struct install_sink sink; /* open NULL: a layer */
	struct buf rest;          /* of the tree, that the importer has no room for yet */
	size_t granted;           /* bytes to grant once @rest is empty */
	bool sent;                /* the whole tree has come */
	bool hides_host;          /* template_hides_host */
	bool is_library;          /* of a compiler: from its root alone, without a network */
	struct image *library;    /* a reference: in its box; NULL: none */
	struct timer *timer;      /* bounds all of it */
	/* Of an installer that failed, until the proxy has reported what it refused. */
	struct timer *report_timer;
	uint64_t report_by_us;
	struct exec_facts facts;
	struct buf log;  /* the last output */
	struct buf lock; /* stdout of the installer */
	uint64_t started_us, timeout_us, max_bytes;
};

struct install {
	struct list node; /* packing.waiters */
	struct packing *packing;
	struct install_events events;
	uint64_t max_bytes; /* of its policies, which may be lower than those of @packing */
};

/* A library that cannot be made is not tried again for some time. */
struct library_failure {
	char key[WANTED_KEY_LEN];
	uint64_t at_us; /* 0: none */
};

struct installs {
	struct installs_config config;
	struct list packings;
	struct library_failure failures[LIBRARY_FAILURES];
	size_t failures_next;
	size_t running; /* not queued, not ended */
	bool stopping;
};

/* What the policies of a request grant. */
struct install_grant {
	struct policy_stack stack; /* borrowed for the call */
	struct policy_packages limits;
};

/* packing.c */

/** packing_start - enter the scheduler. */
int packing_start(struct packing *b, struct error *err) attr_must_check;
/** packing_fail - tell all waiters, and end the box. @b may be gone afterwards. */
void packing_fail(struct packing *b, const struct error *err);
/** packing_drop - no waiter is left. @b may be gone afterwards. */
void packing_drop(struct packing *b);
/** packing_push - send what the importer or the sink had no room for. @b may be gone afterwards. */
void packing_push(struct packing *b);
/** packing_sunk - the sink has all, or failed. @b may be gone afterwards. */
void packing_sunk(struct packing *b, const struct error *err);
void packing_free(struct packing *b);

/* install.c */

/** install_find - one of the same that runs or waits. NULL: none. */
struct packing *install_find(const struct installs *all, const char *tenant, const char *key);
/** install_add - begin or queue one. Takes what @wanted owns. ERR_BUSY. */
int install_add(struct installs *all, const struct install_request *request,
                const struct install_grant *grant, struct wanted *wanted,
                struct packing **ret_packing, struct error *err) attr_must_check;
/** install_done - the layer is there. @b may be gone afterwards. */
void install_done(struct packing *b, struct layer *layer);
/** install_next - start the next in the queue. */
void install_next(struct installs *all);
const char *install_registry(const struct installs *all, const struct manager *m);
/** install_check_size - ERR_TOO_LARGE. */
int install_check_size(const struct image *image, uint64_t max_bytes,
                       struct error *err) attr_must_check;

/* library.c */

/** library_failed - @b was to make one. */
void library_failed(const struct packing *b, const struct error *err);

/* registry.c */

/** registry_rule - "HOST:PORT" of @url, for an allowlist. -EINVAL: not an http(s) URL of a host. */
int registry_rule(const char *url, char *ret_rule, size_t size) attr_must_check;
/** registry_is_public - whether @rule has the host of the manager's built-in URL. */
bool registry_is_public(const struct manager *m, const char *rule);
