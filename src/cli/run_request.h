/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the request of an execution from the options of "millibox run". */

#include "base/buf.h"
#include "base/error.h"
#include "base/size.h"
#include "cli/client/daemon.h"
#include "cli/options.h"
#include "client/millibox.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The daemon's own limits are lower. */
#define RUN_INPUT_MAX (64 * MIB)

struct run_options {
	const char *language;
	const char *template_id;
	struct option_list packages;
	const char *package_names; /* more of them, with commas between */
	const char *lock;          /* instead: files, with commas between */
	const char *code;
	const char *handler; /* handler file, called with @event (JSON, or @FILE) */
	const char *event;
	const char *context;
	const char *stdin_path;
	const char *receipt;
	const char *policy;
	const char *network;
	struct option_list network_allow;
	struct option_list secrets;
	struct option_list mcp;
	struct daemon_options at;
	uint64_t timeout_us;
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint64_t cpu_millicores;
	uint64_t processes;
	uint64_t output_bytes;
	struct option_list env;
	struct option_list files;
	struct option_list language_options;
	bool json;
	bool in_session; /* the session has a default language */
	bool guess;      /* ... which counts only if the code tells none */
	const char *dir; /* its copy is the workspace; NULL: none */
	bool diff, apply, apply_risky, apply_modes;
	bool interactive; /* on a terminal, which is ours */
	bool background;  /* beside the session's queue */
};

/* Read from files. */
struct run_input {
	const char *language;  /* NULL: the daemon chooses */
	const char *file_name; /* of the program; NULL: none */
	struct buf code;
	struct buf stdin_data;
	json_t *event, *context; /* owned; NULL: none */
};

/**
 * run_request_stdin - what becomes the standard input of program @word (NULL: given by an option):
 * the file of --stdin, or "-" if a pipe or a file is ours. NULL: nothing. Other descriptors, such
 * as terminals and sockets, are not read: who holds the other end might not close it.
 */
const char *run_request_stdin(const struct run_options *options, const char *word);
/** run_request_has_program - by an option; for struct options. */
bool run_request_has_program(const void *values);
/** run_request_read - read program @word ("-": stdin; NULL: --code), stdin and language. */
int run_request_read(const struct run_options *options, const char *word,
                     struct run_input *ret_input, struct error *err) attr_must_check;
void run_input_done(struct run_input *input);
#define cleanup_run_input attr_cleanup(run_input_done)
/** run_request_build - Return: owned, or NULL with *err. */
struct millibox_request *run_request_build(const struct run_options *options,
                                           const struct run_input *input, const struct args *args,
                                           struct error *err) attr_must_check;
/**
 * run_request_common - fields that sessions and executions share. Return: owned, or NULL with *err.
 */
json_t *run_request_common(const struct run_options *options, struct error *err) attr_must_check;
