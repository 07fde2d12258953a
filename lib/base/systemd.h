/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: whether an ordinary user gets control groups of its own from systemd. The user's manager
 * delegates one to a scope; it can hand on controllers of v2 only.
 */

enum systemd_delegation {
	SYSTEMD_NONE,       /* systemd is not init: a container, another init */
	SYSTEMD_V1,         /* controllers are on v1, also in part */
	SYSTEMD_NO_MANAGER, /* the user has none: su, cron, a service */
	SYSTEMD_NO_PROGRAM, /* systemd-run(1) is missing */
	SYSTEMD_DELEGATES,
	SYSTEMD_DELEGATION_COUNT
};

/** systemd_delegation - for this process's user. Looks at files only, starts and asks nothing. */
enum systemd_delegation systemd_delegation(void);
/** systemd_runtime_dir - "XDG_RUNTIME_DIR=..." of the user's manager. Return: owned; NULL: none. */
char *systemd_runtime_dir(void);

/* argv before a program that is to run in a scope, which it then may divide. */
#define SYSTEMD_RUN "/usr/bin/systemd-run"
#define SYSTEMD_SCOPE_WORDS                                                                        \
	SYSTEMD_RUN, "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--"
#define SYSTEMD_SCOPE_COUNT 8
