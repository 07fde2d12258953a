/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the state of millibox-agent, PID 1 of a box: one thread, one poll loop, one execution at a
 * time, programs beside it, a few resident runners. Owned by main.c.
 *
 * Trust: malformed frames of the host end the agent and the box. Nothing of the payload is trusted
 * or can end the agent: it has other ids and no descriptor of ours except its stdio, and all that
 * it makes us read is bounded.
 */

#include "guest/beside.h"
#include "guest/channel.h"
#include "guest/container.h"
#include "guest/discard.h"
#include "guest/files.h"
#include "guest/inject.h"
#include "guest/journal.h"
#include "guest/kill_all.h"
#include "guest/ports.h"
#include "guest/proc.h"
#include "guest/put.h"
#include "guest/resident.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <stdint.h>

#define AGENT_SOCKET    3
#define AGENT_WORKSPACE "/workspace"
#define AGENT_RUN_DIR   "/run/millibox"

struct agent {
	bool is_init; /* all other processes belong to the box */
	bool is_set_up;
	bool reap_again;
	uint32_t failed; /* execution whose frames are skipped */
	uint32_t layers; /* mask of enum wire_layer */
	int landlock_abi;
	int signals; /* owned descriptors, from here on */
	int null;
	int workspace;
	int run_dir;
	int ruleset; /* -1: no Landlock */
	struct container container;
	struct msg_setup setup;
	struct put put;
	struct proc proc;
	struct beside *besides[WIRE_BESIDE_MAX]; /* owned; NULL: none */
	size_t besides_end;                      /* none from here on */
	bool had_beside;                         /* there may be processes of ended ones */
	struct resident residents[RESIDENT_MAX];
	struct kill_all_snapshot snapshot;
	struct discard discard;
	struct inject *inject; /* owned */
	int reattach;          /* -1: this box ends with its daemon */
	struct journal journal;
	struct file_stream files[WIRE_FILES_MAX];
	pid_t files_leaving[WIRE_FILES_MAX]; /* children cleaning up; 0: none */
	struct ports ports;
	uint64_t files_ns; /* file_clock_latest() after the last change of files */
	struct channel ch;
};

/** agent_send_hello - first on every stream. */
int agent_send_hello(struct agent *a) attr_must_check;
/** agent_flush - record what must be kept, then send. */
int agent_flush(struct agent *a) attr_must_check;

/** agent_send_failed - @id has ended without a program. */
int agent_send_failed(struct agent *a, uint32_t id, const struct error *err) attr_must_check;
/** agent_fail - the same; what else comes for @id is skipped. */
int agent_fail(struct agent *a, uint32_t id, const struct error *err) attr_must_check;
/**
 * agent_open_run_dir - whether the owner of AGENT_RUN_DIR can change names in it. With two ids the
 * owner is the agent alone: no-op. With one it is the payload too: closed while a program runs.
 */
int agent_open_run_dir(const struct agent *a, bool open) attr_must_check;
/** agent_remove_source - a program's code: nothing else frees its small directory. */
void agent_remove_source(const struct agent *a, const char *name);
