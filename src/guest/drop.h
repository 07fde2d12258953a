/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: how a child of the agent becomes the payload, between fork and exec: system calls only, no
 * allocation. The order of the steps, a table in drop.c, matters.
 */

#include "base/attr.h"
#include "base/error.h"
#include "wire/msg.h"
#include <stdbool.h>
#include <sys/types.h>

#define DROP_CHANNEL 3 /* a runner's request channel */
#define DROP_STDIN   4 /* stdin that a prepared program may get */

struct drop_plan {
	const struct msg_setup *setup;
	int stdio[3];
	int channel;   /* becomes DROP_CHANNEL; 0: none */
	int stdin_end; /* becomes DROP_STDIN, beside a channel; 0: none */
	int workspace;
	int ruleset;
	int status;    /* socket to the agent; close-on-exec */
	bool notify;   /* refused calls go to the agent, over @status */
	bool terminal; /* stdio is one: it becomes the session's */
};

/**
 * drop_to_payload - irreversible. Leaves descriptors 0, 1, 2, the channel and DROP_STDIN, and until
 * exec @status and the ruleset. On failure the process must exit.
 */
int drop_to_payload(const struct drop_plan *plan, struct error *err) attr_must_check;

/** drop_privileges - take these ids and drop all capabilities. Return: 0 or a negative errno. */
int drop_privileges(uid_t uid, gid_t gid) attr_must_check;

/** drop_enter - @cwd is below the workspace; "" is the workspace. */
int drop_enter(const char *cwd, struct error *err) attr_must_check;

/* A child's one message over @status before exec. */
enum drop_word {
	DROP_LISTENER, /* carries its filter's listener */
	DROP_ERROR,    /* struct error follows */
	DROP_DONE,     /* a child that executes nothing is done */
	DROP_READY,    /* a zygote's child is the payload, verified */
};

struct drop_message {
	enum drop_word word;
	struct error error;
};

int drop_report(int status, enum drop_word word, const struct error *err);
