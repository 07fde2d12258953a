/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: where a runner reports (docs/protocol.md): a Unix socket that the payload may connect to
 * once per execution. The bytes have the payload's authority: forwarded up to a maximum, not
 * parsed, without ancillary data.
 */

#include "base/attr.h"
#include "guest/channel.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define REPORT_NAME "report.sock"

struct report {
	int listener;  /* owned; -1: not listening */
	int conn;      /* owned; -1: not connected */
	int dir;       /* borrowed: directory of the socket */
	uint32_t left; /* to forward */
	pid_t session; /* whose processes may connect; 0: all */
};

/** report_open - listen on REPORT_NAME in @path, open as @dir. */
int report_open(struct report *rep, const char *path, int dir, uint32_t max) attr_must_check;
void report_close(struct report *rep);
int report_fd(const struct report *rep, const struct channel *ch);
/** report_pump - accept or read once. Return: bytes forwarded, or the channel's negative errno. */
int report_pump(struct report *rep, struct channel *ch, uint32_t id) attr_must_check;
