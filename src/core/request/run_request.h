/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a caller requests of a run. api/ decodes it, policy decides on it, the scheduler queues
 * copies.
 */

#include "base/attr.h"
#include "base/error.h"
#include "driver/box_spec.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct template;
struct templates;

/* How much a result says about what isolated the run. */
enum receipt_form {
	RECEIPT_NONE,   /* engine, mode and what is missing */
	RECEIPT_PLAIN,  /* everything */
	RECEIPT_SIGNED, /* everything, signed */
};

struct run_request_file {
	char *name; /* owned; relative to the workspace */
	char *data; /* owned */
	size_t len;
};

/* All pointers are owned. 0 or NULL: not requested. */
struct run_request {
	const char *tenant; /* borrowed for the call; NULL: TENANT_DEFAULT */
	char *request_id;   /* for logs and audit */
	const char *key_id; /* borrowed for the call; NULL: no key */
	char *language;
	char *code;
	size_t code_len;
	char *stdin_data;
	size_t stdin_len;
	bool stdin_open;    /* more may follow (run_record_stdin) */
	size_t stdin_early; /* of stdin_len: followed the request */
	/* JSON: what the runner must do besides, docs/protocol.md, "The source". */
	char *ask;
	char *name_ask;   /* the same, of a program that only has a name */
	uint64_t receipt; /* enum receipt_form */
	bool durable;     /* persist before acknowledging or running */
	bool fresh;       /* in a session: start a new process */
	bool background;  /* in a session: beside its queue, in a new process */
	/* Of its terminal, which implies @background and open stdin; 0: none. */
	uint64_t tty_rows, tty_cols;
	uint64_t left_us; /* @background: of its session's lifetime; 0: not known */
	bool in_session;  /* its session makes its command and environment */
	char **args;      /* NULL-terminated */
	char **env;       /* NULL-terminated NAME=value */
	char **options;   /* of the language, NULL-terminated NAME=value */
	char *cwd;        /* clean path in the workspace */
	struct run_request_file *files;
	size_t files_count;
	uint64_t timeout_us;
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t cpu_millicores;
	uint64_t max_processes;
	uint64_t max_output_bytes;
	char *policy; /* additional to the tenant's; NULL: none */
	char *engine; /* name, or "auto"; NULL: the template's, or the default */
	enum box_grade min_isolation;
	bool network_asked;
	bool network_most; /* @network is the most: less, if the policy grants less */
	enum box_network network;
	char **network_allow;      /* hosts, instead of the policy's; NULL-terminated */
	char **secrets;            /* names; NULL-terminated */
	char **mcp;                /* SERVER or SERVER/TOOL that the code may call; the same */
	bool timeout_soft;         /* timeout_us is a default: not the caller's */
	char *template_id;         /* NULL: the host's root and the operator's defaults */
	char **packages;           /* to be installed; NULL-terminated */
	char *lock;                /* text of a lock file, instead of packages */
	struct template *template; /* a reference, by @template_id */
};

void run_request_done(struct run_request *request);

struct exec_source {
	const char *name;
	const char *code;
	size_t len;
};

/** run_request_files - the code, then the files. The array is owned, its contents are borrowed. */
struct exec_file *run_request_files(const struct run_request *request,
                                    const struct exec_source *source);
/* Kept for a program that has not started. */
#define RUN_STDIN_EARLY_MAX (1u << 20)

/**
 * exec_source_ask - combine @source with what @request asks for besides, as a runner reads it.
 * Return: the buffer that @source now points to, owned; NULL: nothing was added.
 */
char *exec_source_ask(struct exec_source *source, const struct run_request *request);
/**
 * run_request_add_stdin - for a queued execution. ERR_TOO_LARGE beyond RUN_STDIN_EARLY_MAX,
 * ERR_CONFLICT after end of input.
 */
int run_request_add_stdin(struct run_request *request, const void *data, size_t len, bool end,
                          struct error *err) attr_must_check;
/** run_request_copy - owned. */
struct run_request *run_request_copy(const struct run_request *request);

/**
 * run_request_fill - @request with its template's default limits and language, and @env (of
 * template_env). Borrows from all three.
 */
struct run_request run_request_fill(const struct run_request *request, char **env);
/** run_request_find_template - resolve template_id, if any. */
int run_request_find_template(const struct templates *all, const char *tenant,
                              struct run_request *request, struct error *err) attr_must_check;

/** run_request_to_json - for the store; without code and what the session decides. Return: owned.
 */
char *run_request_to_json(const struct run_request *request) attr_must_check;
/** run_request_from_json - @ret_request has no code. ERR_STORAGE if damaged. */
int run_request_from_json(const char *text, struct run_request *ret_request,
                          struct error *err) attr_must_check;
