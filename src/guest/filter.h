/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the seccomp filters, made at build time from seccomp/payload.txt. Installing needs
 * no_new_privs. Once on a process a filter can't be taken off it, nor off its children.
 */

#include "base/attr.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

/* An option of prctl that no kernel has: the agent's and a zygote's filter answer ENOTUNIQ. */
#define FILTER_BENEATH 0x6d626f78

enum filter {
	FILTER_PAYLOAD,       /* refusals go to a listener; only on top of an agent's or zygote's */
	FILTER_PAYLOAD_QUIET, /* the same by itself, without a listener: refusals are EPERM */
	FILTER_AGENT,         /* the payload's calls and those that the agent needs */
	FILTER_ZYGOTE,    /* the agent's calls and those that bring a zygote's child into a box */
	FILTER_UNCHARGED, /* refuses memory that RLIMIT_DATA does not count; allows all else */
	FILTER_COUNT
};

struct filter_program {
	const struct sock_filter *code;
	uint16_t len;
};

extern const struct filter_program filter_programs[FILTER_COUNT];

/** filter_install - put @filter on the calling process. Return: 0 or a negative errno. */
int filter_install(enum filter filter) attr_must_check;
/**
 * filter_install_payload - the payload's filter; refusals go to the listener *ret_listener. Where
 * the kernel cannot give one the quiet filter is installed and *ret_listener is -1. -ENOLINK:
 * neither the agent's filter nor a zygote's, to which it leaves the rest, is beneath it.
 */
int filter_install_payload(int *ret_listener) attr_must_check;
