/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: shared by the engine's files. struct host is constant after the start; struct build is one
 * box being made. The child of clone3 works on its own copy of both.
 */

#include "base/attr.h"
#include "base/error.h"
#include "engine/box_groups.h"
#include "engine/cgroup.h"
#include "engine/cgroup_io.h"
#include "engine/engine.h"
#include "engine/options.h"
#include "engine/plan.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Ids inside a box. */
#define BOX_AGENT_ID   0
#define BOX_PAYLOAD_ID 1000
/* The first of IDS_RESERVED that own the files of images; no process has them. */
#define BOX_FILES_ID 65533

/* Where the engine's own root is built. Exists everywhere; hidden from the engine only. */
#define ROOT_STAGE "/tmp"
/* The engine's own root, a tmpfs. See template.c. */
#define ROOT_TEMPLATE  "/template"
#define ROOT_ATTACH    "/box"
#define ROOT_MASK_FILE "/mask/file"
#define ROOT_MASK_DIR  "/mask/dir"
/* See roots.c. */
#define ROOT_BASES    "/roots"
#define ROOT_SKELETON "/skeleton"
#define ROOT_LOWER    "/lower"
#define ROOT_PACKAGES "/packages"
#define ROOT_AREA     "/area"
#define ROOT_LAYERED  "/layered"
/* Files of boxes that have name servers. */
#define ROOT_RESOLVER "/resolver"

/* Of a box that a runtime makes; see runtime.h. */
#define ROOT_OUTSIDE "/outside"
#define ROOT_ENCLOSE "/enclose"

/* Of the agent, below the directory of runners. */
#define AGENT_NAME "millibox-agent"

#define BOXES_MAX         4096
#define HANDOVER_NAME_MAX 64

/* Mapped after the ids of boxes: the owners of images' files, which are root and the daemon. */
#define IDS_RESERVED 2

/* Ids of this instance. */
struct ids {
	enum engine_ids mode;
	uint32_t first;      /* for boxes, as numbered in the engine's user namespace */
	uint32_t host_root;  /* the engine's own, on the host */
	uint32_t host_first; /* the same as first, on the host */
	uint32_t host_gid;   /* ENGINE_IDS_SUBID: the same for groups */
	uint32_t count;
	uint32_t daemon_uid; /* on the host; 0: none */
};

/* Result of privilege.c: the host ids that all instances share. */
struct privilege {
	enum engine_ids mode;
	uint64_t host_uid;
	uint64_t host_gid;
	uint64_t count;
	uint32_t stride; /* ids of one instance */
};

/* Directories of --roots. */
struct bases {
	size_t count;
	int fds[ENGINE_BASES_MAX]; /* owned */
};

struct runner_dirs {
	size_t count;
	int fds[ENGINE_RUNNERS_MAX]; /* owned */
};

struct instance {
	uint32_t number;
	int dir;  /* runtime directory; owned */
	int lock; /* owned */
};

struct handover {
	int listener; /* owned; -1: none */
	uint32_t lease_ms;
	char name[HANDOVER_NAME_MAX + 1];
};

struct proc_mask {
	const char *name;  /* below /proc */
	const char *cover; /* in the engine's root */
};

#define MASKS_MAX 40

struct host {
	struct plan_facts facts;
	struct cgroups groups;
	struct io_limits io;
	struct ids ids;
	uint32_t slots; /* boxes alive at the same time */
	struct engine_limits maxima;
	struct instance instance;
	struct handover handover;
	uint64_t identity;
	uint32_t landlock_abi;
	int guard;               /* socket to the guard (guard.c); owned */
	int bridge;              /* socket to millibox-bridge; owned; -1: none */
	pid_t bridge_pid;        /* 0: none */
	int agent_exe;           /* sealed memfd; owned */
	int zygote_lib;          /* sealed memfd; owned; -1: no zygotes */
	struct runtime *runtime; /* runtime.h; NULL: native boxes */
	int runtime_exe;         /* its program; owned; -1: none */
	uint32_t zygote_forks;
	uint64_t zygote_memory;
	uint64_t zygote_age_us;
	size_t bases_count; /* directories ROOT_BASES/0, 1, ... */
	size_t mask_count;
	struct proc_mask masks[MASKS_MAX];
};

struct cgroup_pool;
struct netns_pool;

struct build {
	const struct host *host;
	struct netns_pool *nets;         /* borrowed */
	struct cgroup_pool *cgroup_pool; /* borrowed */
	struct plan plan;
	char id[ENGINE_ID_LEN];
	char root_name[ENGINE_ROOT_LEN]; /* "": the host's root */
	char packages[ENGINE_ROOT_LEN];  /* "": none */
	char tenant[ENGINE_TENANT_LEN];  /* "": none */
	uint32_t slot, ranges;           /* ranges: see struct engine_request */
	uint32_t address;                /* of its interface; 0: none */
	struct box_groups groups;
	int agent_host; /* daemon's end of the agent's socket; owned */
	int agent_box;  /* agent's end; owned; closed in the engine after clone */
	int sync_host;  /* status socket; owned */
	int sync_box;
	int reattach_host; /* sends a kept box's agent its next stream; owned */
	int reattach_box;
	struct zygote *zygote; /* borrowed; NULL: none */
	int inject_box;        /* the agent's socket to the zygote's child; owned */
	int inject_child;      /* the child's end; owned until it is sent */
	int net, network;      /* namespace, and what listens or counts in it or -1; owned */
	int refusals;          /* the daemon's end of the reader of refusals, or -1; owned */
	int gateway;           /* listens at ENGINE_GATEWAY_NAME, or -1; owned */
	int description;       /* memfd: what the runtime is to make, or -1; owned */
	int pidfd;             /* owned */
	pid_t pid;
	int root; /* in the child only: the new root */
};

/* instance.c */
/** subid_find - find the range of @name or @uid in the text of /etc/subuid. Pure. */
int subid_find(const char *text, const char *name, uint32_t uid, uint64_t *ret_first,
               uint64_t *ret_count) attr_must_check;
/** idmap_covers - whether the text of a uid_map maps all of @first ... @first + @count. Pure. */
bool idmap_covers(const char *text, uint64_t first, uint64_t count);
/** idmap_upper_half - of the longest range in the text of a uid_map: ids that no user of a
 * container has. Return: 0, or -ENOENT if it has fewer than @least. Pure. */
int idmap_upper_half(const char *text, uint64_t least, uint64_t *ret_first,
                     uint64_t *ret_count) attr_must_check;
int instance_claim(const char *runtime_dir, const struct privilege *privilege,
                   struct cgroups *groups, struct instance *ret_instance,
                   struct error *err) attr_must_check;
void instance_release(struct instance *instance);
/** ids_of_instance - the share of @number. Pure. */
struct ids ids_of_instance(const struct privilege *privilege, uint32_t number);
uint32_t ids_slots(const struct ids *ids);
/** ids_inside - what @id of a box is for the process that builds it. With a single id there is one
 * number for all; a runtime needs that to be 0 and makes a user namespace in which it is the
 * payload's. */
uint32_t ids_inside(const struct host *host, uint32_t id);
uint32_t ids_agent(const struct ids *ids, uint32_t slot);
uint32_t ids_payload(const struct ids *ids, uint32_t slot);
/** ids_of_images - the first owner of images' files, as the engine numbers it. */
uint32_t ids_of_images(const struct ids *ids);

/* handover.c */
/** handover_open - listen in the runtime directory. Must run before template_enter(). */
int handover_open(const struct options *options, const struct instance *instance,
                  struct handover *ret_handover, struct error *err) attr_must_check;
/** handover_remove - remove the name of the socket. */
void handover_remove(const struct handover *handover, const struct instance *instance);
/** handover_is_lost - the runtime directory was removed, so no daemon can connect any more. A
 * supervisor that removes it at a stop but not at a restart ends kept boxes this way. */
bool handover_is_lost(const struct instance *instance);
/** handover_accept - Return: a connection of the user who started the engine, or a negative errno.
 */
int handover_accept(const struct handover *handover, enum engine_ids ids) attr_must_check;
/** handover_new_stream - send the agent a new stream over @reattach. Return: the daemon's end, or a
 * negative errno. */
int handover_new_stream(int reattach) attr_must_check;

struct slots {
	uint32_t count;
	uint32_t next;
	uint32_t used;
	bool taken[BOXES_MAX];
};

void slots_init(struct slots *slots, uint32_t count);
/** slots_take - Return: a free slot, or -EBUSY. */
int slots_take(struct slots *slots) attr_must_check;
void slots_put(struct slots *slots, uint32_t slot);

/* template.c: the tree that boxes clone, and the engine's own root */
struct template_parts {
	const struct runner_dirs *runners;
	int addon; /* -1: none */
	int agent; /* as a file, for runtimes that start it by path; -1: none */
};

int template_build(const struct template_parts *parts, const struct ids *ids,
                   const struct bases *bases, struct error *err);
/** template_add_resolvers - after template_build: what boxes with name servers have in /etc. */
int template_add_resolvers(const char *const *addresses, size_t count,
                           struct error *err) attr_must_check;
/** template_load - copy a program or library into a sealed memfd. Return: the memfd, or -1. */
int template_load(const char *path, struct error *err) attr_must_check;
/** template_enter - pivot from the host's tree into the one that was built. */
int template_enter(struct error *err) attr_must_check;

/* step_*.c */
typedef int (*step_fn)(struct build *b, struct error *err);
int step_cgroup_make(struct build *b, struct error *err);
int step_cgroup_limit(struct build *b, struct error *err);
int step_channels(struct build *b, struct error *err);
int step_layers(struct build *b, struct error *err);
int step_packages(struct build *b, struct error *err);
int step_clone(struct build *b, struct error *err);
int step_deathsig(struct build *b, struct error *err);
int step_cgroup_join(struct build *b, struct error *err);
int step_wait(struct build *b, struct error *err);
int step_cgroup_verify(struct build *b, struct error *err);
int step_idmap(struct build *b, struct error *err);
int step_oom_score(struct build *b, struct error *err);
int step_release(struct build *b, struct error *err);
int step_become(struct build *b, struct error *err);
int step_session(struct build *b, struct error *err);
int step_cgroup_ns(struct build *b, struct error *err);
int step_time_ns(struct build *b, struct error *err);
int step_nesting(struct build *b, struct error *err);
int step_hostname(struct build *b, struct error *err);
int step_net(struct build *b, struct error *err), step_egress(struct build *b, struct error *err);
int step_bridge(struct build *b, struct error *err);
int step_resolver(struct build *b, struct error *err);
int step_gateway(struct build *b, struct error *err);
int step_listen(struct build *b, struct error *err);
int step_root(struct build *b, struct error *err);
int step_writable(struct build *b, struct error *err);
int step_terminals(struct build *b, struct error *err);
int step_proc(struct build *b, struct error *err);
int step_masks(struct build *b, struct error *err);
int step_pivot(struct build *b, struct error *err);
int step_rlimits(struct build *b, struct error *err);
int step_descriptors(struct build *b, struct error *err);
int step_caps(struct build *b, struct error *err);
int step_exec(struct build *b, struct error *err);

/* Below the root of a box: what covers the boot id of the host. */
#define PROC_BOOT_ID "run/millibox/boot_id"
/** proc_make_boot_id - at @path, in a directory that the payload cannot write. */
int proc_make_boot_id(const char *path) attr_must_check;
/** proc_masks_find - names of /proc to cover on this kernel. */
void proc_masks_find(struct host *host);

/** caps_drop_bounding - drop all but @keep. Return: 0 or a negative errno. */
int caps_drop_bounding(uint64_t keep) attr_must_check;

/* sweep.c */
/** group_kill_listed - SIGKILL to each process. Return: how many, or -errno. */
int group_kill_listed(int dir);

/* apply.c */
/** apply_phase - run the steps in order, up to the first failure. */
int apply_phase(struct build *b, enum plan_phase phase, struct error *err) attr_must_check;
/** apply_child - main function of the child of clone3. */
void apply_child(struct build *b) attr_noreturn;
void build_init(struct build *b, const struct host *host, struct netns_pool *nets,
                struct cgroup_pool *cgroup_pool);
void build_close(struct build *b);

/* serve.c */
int serve(struct host *host, int sock, struct error *err) attr_must_check;
