/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what a caller asks of a run, in core's words. The decoders of api/ fill it; policy decides
 * on it; the scheduler queues copies of it.
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

struct run_request_file {
	char *name; /* owned; relative path in the workspace */
	char *data; /* owned */
	size_t len;
};

/* What a caller asks for, in core's words. All pointers are owned. 0 or NULL: not asked for. */
struct run_request {
	const char *tenant; /* borrowed for the call; NULL: TENANT_DEFAULT */
	char *request_id;   /* who asked, for logs and audit */
	const char *key_id; /* borrowed for the call, for audit; NULL: no key was needed */
	char *language;
	char *code;
	size_t code_len;
	char *stdin_data;
	size_t stdin_len;
	bool stdin_open;    /* in a session: more may come, see run_record_stdin */
	size_t stdin_early; /* of stdin_len: came after the request, before the start */
	/* JSON: what the runner is asked beyond running the code, docs/protocol.md, "The source".
	 */
	char *ask;
	bool durable; /* in a session: it is not run, nor acknowledged, before it is on the disk */
	bool fresh;   /* in a session: a process of its own, also where a runner stays */
	char **args;  /* NULL-terminated */
	char **env;   /* NULL-terminated NAME=value */
	char *cwd;    /* of a program of its own: where it starts, a clean path in the workspace */
	struct run_request_file *files;
	size_t files_count;
	uint64_t timeout_us;
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t cpu_millicores;
	uint64_t max_processes;
	uint64_t max_output_bytes;
	char *policy; /* to be held to as well as to the tenant's; NULL: none */
	bool network_asked;
	enum box_network network;
	bool disk_soft;            /* disk_bytes is a default: less is taken where memory is less */
	char *template_id;         /* NULL: the host's root and the operator's defaults */
	struct template *template; /* a reference; what @template_id names, once it was found */
};

void run_request_done(struct run_request *request);

struct exec_source {
	const char *name; /* of its file */
	const char *code;
	size_t len;
};

/** run_request_files - the program's text first, then the caller's files: their number and one.
 * The array is owned, what it points to is borrowed. */
struct exec_file *run_request_files(const struct run_request *request,
                                    const struct exec_source *source);
/* Input that is kept for a program that has not been started. */
#define EXEC_STDIN_EARLY_MAX (1u << 20)

/** exec_source_ask - make @source the code and what is asked beyond it, as a runner reads them.
 * Return: owned, what the source now points to; NULL where nothing is asked (@ask NULL). */
char *exec_source_ask(struct exec_source *source, const char *ask);
/** run_request_add_stdin - keep input of an execution that waits. ERR_TOO_LARGE beyond
 * EXEC_STDIN_EARLY_MAX, ERR_CONFLICT after its end. */
int run_request_add_stdin(struct run_request *request, const void *data, size_t len, bool end,
                          struct error *err) attr_must_check;
/** run_request_copy - deep; owned. */
struct run_request *run_request_copy(const struct run_request *request);
/** run_request_free - run_request_done and the struct itself. */
void run_request_free(struct run_request *request);

/**
 * run_request_fill - @request with what its template adds: default limits, language, and @env,
 * which is template_env's. Borrowed from all three.
 */
struct run_request run_request_fill(const struct run_request *request, char **env);
/** run_request_find_template - @request gets what its template_id names; nothing where it names
 * none. */
int run_request_find_template(const struct templates *all, const char *tenant,
                              struct run_request *request, struct error *err) attr_must_check;
