/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the backend interface for core/. A driver provides a byte stream to an agent and a kill
 * switch; everything else goes over the wire (link.c), once for all drivers. Core never compares
 * driver names: capabilities say what a backend cannot guarantee.
 *
 * No function blocks; callbacks run on the loop, never inside the call that caused them.
 */

#include "base/error.h"
#include "driver/box_exec.h"
#include "driver/box_file.h"
#include "driver/box_spec.h"
#include "driver/breaker.h"
#include "driver/counters.h"
#include "service/helper_group.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct driver;
struct box;
struct services;

#define BOX_NETWORK_BIT(network) (1u << (network))

#define DRIVER_HASH_LEN    65
#define DRIVER_RUNTIME_LEN 32
#define DRIVER_RELEASE_LEN 64
#define DRIVERS_MAX        16         /* engines of a daemon */
#define DRIVER_LOSS        "engine '" /* how an error begins that ends all boxes of one engine */

struct driver_caps {
	uint32_t layers;          /* mask of enum wire_layer, of all boxes */
	uint32_t required_layers; /* a box without them is not used, see engine_driver.c */
	enum box_grade grade;
	uint32_t networks; /* mask of enum box_network, besides none */
	bool can_mount;    /* host directories in a box */
	bool has_mcp;      /* MCP servers' tools for code in a box */
	bool can_egress;   /* with a proxy: BOX_NETWORK_ALLOWLIST */
	bool can_gateway;  /* with a gateway: has_mcp */
	uint32_t landlock_abi;
	uint32_t boxes_max;
	uint32_t daemon_uid; /* reserved for the daemon; 0: none */
	bool can_freeze;
	bool can_keep;     /* boxes may outlive the daemon */
	bool has_roots;    /* roots other than the host's */
	bool has_packages; /* packages mounted into a root */
	bool has_zygotes;
	bool counts_usage;                   /* box_counters are real */
	const char *cgroup;                  /* "v1", "v2", "hybrid", "none" */
	const char *ids;                     /* "range", "subid", "single" */
	char filter_sha256[DRIVER_HASH_LEN]; /* of the compiled filters; "": not known */
	char runtime[DRIVER_RUNTIME_LEN]; /* "native", "runc": what makes the boxes; "": not known
	                                   */
	char release[DRIVER_RELEASE_LEN]; /* its version; "": not known */
};

/*
 * After box_destroy only on_gone follows. Callbacks may call box_* functions, including
 * box_destroy; the box is freed after on_gone returns. All are required unless noted.
 */
struct box_events {
	void *ctx;
	/* HELLO arrived with all required layers. Programs may be passed earlier. */
	void (*on_ready)(void *ctx);
	void (*on_started)(void *ctx, uint32_t exec_id);
	void (*on_output)(void *ctx, uint32_t exec_id, enum output_stream stream, const char *data,
	                  size_t len);
	/* Untrusted. */
	void (*on_report)(void *ctx, uint32_t exec_id, const char *data, size_t len);
	/* A system call was denied @count times so far; @what is its name or number. */
	void (*on_denial)(void *ctx, uint32_t exec_id, const char *what, uint64_t count);
	void (*on_done)(void *ctx, uint32_t exec_id, const struct exec_facts *facts);
	/* It could not start; the box continues. */
	void (*on_exec_failed)(void *ctx, uint32_t exec_id, const struct error *err);
	/* The box is unusable: it could not be built, or its agent vanished or broke the protocol.
	 * Everything unfinished is lost. */
	void (*on_lost)(void *ctx, const struct error *err);
	/* Nothing of the box is left on the host. */
	void (*on_gone)(void *ctx);
	/* box_prepare's program waits for box_run. May be NULL if nothing is prepared. */
	void (*on_prepared)(void *ctx, uint32_t exec_id);
	/* Only for an adopted box, after on_ready; else may be NULL. Called for each execution and
	 * runner with an unacknowledged end, in order of creation; a negative result ends the box
	 * (on_lost). Then on_resumed, with the largest id ever used, and all their events again
	 * from on_started. */
	int (*on_resume)(void *ctx, const struct box_resumed *what, struct box_grant *ret_grant);
	void (*on_resumed)(void *ctx, uint32_t last_id);
	void (*on_forgotten)(void *ctx, uint32_t exec_id);
	/* The box is as the latest box_freeze asked. May be NULL if none does. */
	void (*on_frozen)(void *ctx);
};

/* One backend. On the loop; must not block. */
struct driver_ops {
	/* Later failures: on_lost. */
	int (*create)(struct driver *d, const struct box_spec *spec,
	              const struct box_events *events, struct box **ret_box, struct error *err);
	/* NULL: no box outlives a daemon. */
	int (*adopt)(struct driver *d, const struct box_spec *spec, const struct box_events *events,
	             struct box **ret_box, bool *ret_frozen, struct error *err);
	/* May be NULL. See driver_serve; @d has them. */
	void (*serve)(struct driver *d, const struct services *services);
	/* May be NULL. End kept boxes not adopted. */
	void (*settle)(struct driver *d);
	/* May be NULL. Kept boxes survive the free that follows. */
	void (*leave)(struct driver *d);
	/* See box_freeze. NULL: not supported. */
	int (*freeze)(struct box *box, bool frozen, struct error *err);
	/* May be NULL. box_give assigned a spare box: keep it. */
	void (*claim)(struct box *box);
	void (*counters)(struct box *box, enum counters_for purpose,
	                 struct box_counters *ret_counters);
	/* NULL: no box has an interface. Apply network and ranges of box->spec. */
	void (*reach)(struct box *box);
	/* May be NULL. Of a box with an interface; false: it has none. */
	bool (*traffic)(struct box *box, struct box_network_usage *ret);
	/* May be NULL, all of them. What an interface was refused. */
	void (*ask_denials)(struct box *box);
	bool (*settle_denials)(struct box *box, uint64_t wait_us);
	size_t (*denials)(struct box *box, struct box_denial *ret, size_t max);
	/* Kill everything in the box; idempotent; never fails; on_gone follows. */
	void (*destroy)(struct box *box);
	/* Remaining boxes end without a callback. The loop must exist. */
	void (*free)(struct driver *d);
};

/* All engines of a daemon, in the order of the configuration. */
struct driver_set {
	size_t count;
	struct driver *list[DRIVERS_MAX];
};

struct driver {
	const struct driver_ops *ops;
	const char *name;             /* of the engine, as it is configured */
	const struct driver_set *set; /* borrowed; NULL: it is the only one */
	struct driver_caps caps;
	struct breaker breaker;           /* closed: it makes boxes */
	const struct services *services;  /* borrowed; NULL: none yet */
	struct helper_group import_group; /* for millibox-import; owned */
};

/** driver_at - the engines of @d's daemon, in the order of the configuration. Return: NULL past the
 * end. */
struct driver *driver_at(const struct driver *d, size_t index);
/** driver_best_grade - the highest of the engines that make boxes on other roots than the host's.
 */
enum box_grade driver_best_grade(const struct driver *d);
/** driver_find - that with this name, or @d itself for "". Return: NULL: there is none. */
struct driver *driver_find(const struct driver *d, const char *name);
/** driver_check - ERR_UNAVAILABLE while it makes no boxes. */
int driver_check(const struct driver *d, struct error *err) attr_must_check;
/**
 * box_create - by the engine that @spec names, one of @d's daemon. Checks @spec against its
 * capabilities first.
 */
int box_create(struct driver *d, const struct box_spec *spec, const struct box_events *events,
               struct box **ret_box, struct error *err) attr_must_check;
/**
 * box_adopt - take over box @spec->id, created by an earlier daemon with @spec and keep. Before
 * driver_settle. ERR_NOT_FOUND: gone. *ret_frozen: no callback (not even on_ready) until it is
 * thawed.
 */
int box_adopt(struct driver *d, const struct box_spec *spec, const struct box_events *events,
              struct box **ret_box, bool *ret_frozen, struct error *err) attr_must_check;
/**
 * driver_serve - boxes get the proxy and the gateway of @services. Again when one of them is gone
 * for good: requests that need it are refused from then on.
 */
void driver_serve(struct driver *d, const struct services *services);
/** driver_settle - adoption is complete: end other kept boxes. Of all engines. */
void driver_settle(struct driver *d);
/** driver_leave - before driver_free: kept boxes outlive the daemon. Of all engines. */
void driver_leave(struct driver *d);
/** box_ack - kept box: the end of an execution or runner is persisted; no later daemon sees it. */
void box_ack(struct box *box, uint32_t exec_id);
/** box_exec - later errors: on_exec_failed. */
int box_exec(struct box *box, const struct exec_plan *plan, struct error *err) attr_must_check;
/**
 * box_prepare - start a process that waits for its code. on_prepared follows, or on_exec_failed,
 * also if the process exits while waiting. Not in a kept box.
 */
int box_prepare(struct box *box, const struct prepare_plan *plan,
                struct error *err) attr_must_check;
/**
 * box_give - assign the box: @events replace its callbacks, log lines name @request_id (NULL:
 * none). A spare box is kept from now on.
 */
void box_give(struct box *box, const struct box_events *events, const char *request_id);
/**
 * box_run - run code in a resident runner; events have @plan's id. If the runner exits, the run's
 * on_done says so, and the runner's on_done follows. A prepared program becomes what box_exec would
 * have started.
 */
int box_run(struct box *box, const struct run_plan *plan, struct error *err) attr_must_check;
/**
 * box_stdin - queued, at most BOX_STDIN_MAX (ERR_TOO_LARGE beyond). Bytes for an ended execution
 * are dropped.
 */
int box_stdin(struct box *box, uint32_t exec_id, const void *data, size_t len,
              struct error *err) attr_must_check;
int box_stdin_end(struct box *box, uint32_t exec_id, struct error *err) attr_must_check;
/** box_stdin_waiting - bytes that the program has not made room for. */
size_t box_stdin_waiting(struct box *box, uint32_t exec_id);
int box_signal(struct box *box, uint32_t exec_id, int signo, struct error *err) attr_must_check;
/** box_resize - the terminal of a program; nothing if it has ended. */
int box_resize(struct box *box, uint32_t exec_id, uint16_t rows, uint16_t cols,
               struct error *err) attr_must_check;
/**
 * box_take_output - @bytes of a terminal's on_output were consumed. More than
 * WIRE_TERMINAL_WINDOW are never on their way: then its program waits.
 */
void box_take_output(struct box *box, uint32_t exec_id, size_t bytes);
void box_counters(struct box *box, enum counters_for purpose, struct box_counters *ret_counters);
/** box_freeze - Return: 0: the kernel has done it; 1: it was asked, on_frozen or on_lost follows;
 * -1.
 */
int box_freeze(struct box *box, bool frozen, struct error *err) attr_must_check;
void box_destroy(struct box *box);
const char *box_id(const struct box *box);
/** box_applied - what the box was made with; valid as long as it. */
const struct box_spec *box_applied(const struct box *box);
/** box_set_rules - replace the rules of a box with BOX_NETWORK_ALLOWLIST. */
void box_set_rules(struct box *box, struct box_rules *rules);
/** box_set_ranges - of a box with BOX_NETWORK_BRIDGE. If that fails, on_lost follows. */
void box_set_ranges(struct box *box, uint16_t ranges);
/** box_disconnect - from BOX_NETWORK_BRIDGE to BOX_NETWORK_NONE. If that fails, on_lost follows. */
void box_disconnect(struct box *box);
/** box_set_tools - replace the tools that a box with some may call. */
void box_set_tools(struct box *box, struct box_rules *tools);
/** box_tool_denials - move up to @max refused calls to @ret. Return: their number. */
size_t box_tool_denials(struct box *box, struct box_tool_denial *ret, size_t max);
/** box_denials - move up to @max connections that were refused to @ret. Return: their number. */
size_t box_denials(struct box *box, struct box_denial *ret, size_t max);
/** box_ask_network - have the present values reported, for box_network_usage later. */
void box_ask_network(struct box *box);
/** box_settle_network - wait up to @wait_us for that report. Return: whether none is due. */
bool box_settle_network(struct box *box, uint64_t wait_us);
/** box_network_usage - over its life, as far as reported. Return: false: it has neither proxy nor
 * interface. Of an interface .connections is COUNTER_UNKNOWN. */
bool box_network_usage(struct box *box, struct box_network_usage *ret);
/** box_network_growth - of @now since the last call. Meaningless for what is COUNTER_UNKNOWN. */
void box_network_growth(struct box *box, const struct box_network_usage *now,
                        struct box_network_usage *ret);

/** box_layers - all that the box has. */
uint32_t box_layers(const struct box *box);
/** box_vouched - of those, the ones that only the runtime's word shows. */
uint32_t box_vouched(const struct box *box);
/** box_driver - the engine that made it. */
const struct driver *box_driver(const struct box *box);
/** box_start - how its first program started; valid from its on_started. */
enum box_start box_start(const struct box *box);
void driver_free(struct driver *d);
