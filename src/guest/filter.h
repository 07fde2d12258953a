/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the seccomp filters, compiled at build time from seccomp/payload.txt. Installing needs
 * no_new_privs. Neither a process nor its children can remove a filter.
 */

#include "base/attr.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

/* An option of prctl that no kernel has: an agent's or zygote's filter answers ENOTUNIQ. */
#define FILTER_BENEATH 0x6d626f78

enum filter {
	FILTER_PAYLOAD, /* refusals go to a listener; only on top of the agent's or a zygote's */
	FILTER_PAYLOAD_QUIET, /* standalone, without a listener: refusals are EPERM */
	FILTER_AGENT,         /* the payload's calls and those that the agent needs */
	FILTER_ZYGOTE,    /* the agent's calls and those that bring a zygote's child into a box */
	FILTER_UNCHARGED, /* refuses memory that RLIMIT_DATA does not count; allows everything else
	                   */
	FILTER_COUNT
};

struct filter_program {
	const struct sock_filter *code;
	uint16_t len;
};

extern const struct filter_program filter_programs[FILTER_COUNT];

int filter_install(enum filter filter) attr_must_check;
/**
 * filter_install_payload - refusals go to the listener *ret_listener. If the kernel cannot provide
 * one the quiet filter is installed and *ret_listener is -1. -ENOLINK: neither the agent's nor a
 * zygote's filter, on which it relies, is beneath it.
 */
int filter_install_payload(int *ret_listener) attr_must_check;
