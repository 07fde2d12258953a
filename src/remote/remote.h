/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: millibox-remote is an engine (engine/engine.h) whose boxes are containers that a server
 * makes: the Docker Engine today. It is one unprivileged process with one loop.
 *
 *   main.c     options; start: privileges, confinement, loop
 *   serve.c    the daemon's requests; slots; the end
 *   box.c      the life of a box, whichever server has it
 *   relay.c    bytes between the daemon's socket and the server's stream to the agent
 *   docker*.c  the Docker Engine, behind struct remote_ops
 *
 * What a server says is not trusted: bounded, parsed without privileges, and never the name of
 * something that this program opens or executes.
 */

#include "base/attr.h"
#include "base/error.h"
#include "base/list.h"
#include "engine/engine.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;
struct relay;
struct timer;

#define REMOTE_BOXES_MAX 1024
/* Places in a box. */
#define REMOTE_AGENT    "/opt/millibox/agent"
#define REMOTE_RUNNERS  "/opt/millibox/runners"
#define REMOTE_ADDON    REMOTE_RUNNERS "/addon.node"
#define REMOTE_PACKAGES "/opt/millibox/packages"

struct remote_options {
	int fd;
	const char *server; /* name of a row of servers[] in serve.c: "docker" */
	const char *socket; /* of the server; NULL: its usual place */
	const char *image;  /* for boxes without a root of their own; NULL: the host's /usr */
	const char *container_runtime; /* NULL: the server's default */
	const char *agent;
	size_t runners_count, bases_count;
	const char *runners[ENGINE_RUNNERS_MAX];
	const char *bases[ENGINE_BASES_MAX]; /* --roots */
	const char *addon;                   /* NULL: none */
	const char *runtime_dir;
	const char *handover; /* tells the daemons of a host apart; NULL: runtime_dir does */
	uint64_t uid_base;    /* ours; then those of the boxes, then the daemon's */
	uint64_t identity;
	struct engine_limits maxima;
};

/* A stream to an agent, as a server offers it. Not blocking. */
struct remote_stream {
	int fd; /* to wait for; owned */
	/* As read(2) and write(2), with a negative errno: only bytes of the agent. @read may keep
	 * bytes that @fd does not announce, so it is called until -EAGAIN. */
	ssize_t (*read)(struct remote_stream *s, char *data, size_t size);
	ssize_t (*write)(struct remote_stream *s, const char *data, size_t len);
	void (*free)(struct remote_stream *s);
};

enum remote_box_state {
	REMOTE_BOX_MAKING,
	REMOTE_BOX_UP,
	REMOTE_BOX_ENDING,
};

/* A box as the daemon knows it. */
struct remote_box {
	struct list node; /* remote.boxes */
	struct remote *remote;
	enum remote_box_state state;
	struct engine_request request; /* its CREATE */
	uint32_t slot;
	uint32_t create_seq, destroy_seq, freeze_seq; /* 0: not asked, or answered */
	bool announced;                               /* CREATED was sent */
	bool wants_frozen;
	int wait_status;
	struct relay *relay; /* owned; NULL before there is a stream */
	int daemon_end;      /* of the agent's socket; owned; -1: the daemon has it */
	void *place;         /* of the server's file: owned by it until box_is_gone */
};

/*
 * What a kind of server can do. Each operation is answered by one of the functions below, on the
 * loop or at once.
 */
struct remote_ops {
	const char *name;
	/** Before the confinement: may look at files. Return: NULL with *err. */
	void *(*open)(struct remote *r, const struct remote_options *options, struct error *err);
	void (*close)(void *server);
	/** Answered by remote_probed or remote_is_unusable. Removes what an earlier life left. */
	void (*probe)(void *server);
	/** Answered by box_is_up, after box_connect, or box_has_failed. */
	void (*create)(void *server, struct remote_box *box);
	/** Answered by box_is_frozen; only while the box is up. */
	void (*freeze)(void *server, struct remote_box *box);
	/** No answer: the program ends. */
	void (*forget)(struct remote_box *box);
	/** In any state; ends what is in progress; answered by box_is_gone, however long it takes.
	 */
	void (*destroy)(void *server, struct remote_box *box);
};
extern const struct remote_ops docker_ops;

/* serve.c */
struct remote;
/** remote_uids - of the program, the first box and the daemon, on the host. */
struct remote_uids {
	uint32_t own, boxes, daemon;
};
struct remote_uids remote_uids(const struct remote_options *options);
/** remote_serve - until the daemon is gone and no box is left. */
int remote_serve(const struct remote_options *options, struct error *err) attr_must_check;
struct loop *remote_loop(struct remote *r);
void remote_probed(struct remote *r, const struct engine_probe *probe);
/** remote_is_unusable - answers PROBE with FAILED, then the program ends. */
void remote_is_unusable(struct remote *r, const struct error *err);
bool remote_has_box(const struct remote *r, const char *id);

/* box.c */
/** box_connect - the agent's stream; takes @far. */
int box_connect(struct remote_box *box, struct remote_stream *far) attr_must_check;
/** box_is_up - @created: layers, vouched and ids. @fds: takes what else the daemon gets; -1: none.
 */
void box_is_up(struct remote_box *box, const struct engine_created *created,
               int fds[ENGINE_FD_COUNT]);
/** box_has_failed - destroy follows: the server's file may have begun something. */
void box_has_failed(struct remote_box *box, const struct error *err);
/** box_has_ended - by itself; destroy follows. @wait_status as of waitpid. */
void box_has_ended(struct remote_box *box, int wait_status);
/** box_is_frozen - @err NULL: it is as box->wants_frozen says. */
void box_is_frozen(struct remote_box *box, const struct error *err);
/** box_is_gone - nothing of it is left; frees @box. */
void box_is_gone(struct remote_box *box);

/* box.c, for serve.c */
struct remote_box *box_new(struct remote *r, const struct engine_request *request, uint32_t slot);
void box_end(struct remote_box *box);

/* serve.c, for box.c */
void remote_reply(struct remote *r, struct engine_reply *reply, const int *fds, size_t count);
void remote_fail(struct remote *r, uint32_t seq, const char *box_id, const struct error *err);
void remote_forget(struct remote *r, struct remote_box *box);
const struct remote_ops *remote_ops_of(const struct remote *r);
void *remote_server_of(const struct remote *r);

/* privilege.c */
/**
 * privilege_drop - root becomes @uid, before any byte of a server. The group of @socket stays, to
 * connect, and the right to read what others own, which confine() limits to --roots.
 */
int privilege_drop(const char *socket, uint32_t uid, struct error *err) attr_must_check;
/* confine.c */
int confine(const struct remote_options *options, struct error *err) attr_must_check;
