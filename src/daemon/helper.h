/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: programs that the daemon starts with its own ids, while it still can: millibox-import,
 * millibox-egress and, if MCP servers are configured, millibox-gateway. Each is opened earlier, by
 * the user who started the daemon: the daemon's ids may have no access to its path.
 */

#include "base/attr.h"
#include "base/error.h"
#include "service/helper_group.h"
#include <sys/types.h>

struct config;
struct secrets;

struct helper {
	int exe;   /* owned until started; -1: none */
	pid_t pid; /* 0: none */
	int sock;  /* until taken over; -1: none */
};

struct helpers {
	struct helper import, egress, gateway;
};

#define HELPERS_INIT                                                                               \
	{                                                                                          \
		.import = {.exe = -1, .sock = -1}, .egress = {.exe = -1, .sock = -1}, .gateway = { \
			.exe = -1,                                                                 \
			.sock = -1                                                                 \
		}                                                                                  \
	}

/** helpers_find - looks beside the engine. */
int helpers_find(struct helpers *h, const struct config *config, struct error *err) attr_must_check;
/**
 * helpers_start - after the ids were dropped and before the filter: they get our ids and no more.
 * Images are unpacked into @roots, limited by @group, which it closes.
 */
int helpers_start(struct helpers *h, const struct config *config, const char *roots,
                  struct helper_group *group, const struct secrets *secrets,
                  struct error *err) attr_must_check;
/** helpers_end - wait for them, after their sockets were closed. */
void helpers_end(struct helpers *h);
