/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/filter.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int load_filter(enum filter filter, unsigned flags)
{
	const struct filter_program *p = &filter_programs[filter];
	struct sock_fprog prog = {
		.len = p->len,
		/* The kernel only reads it; its header lacks the const. */
		.filter = (struct sock_filter *)(uintptr_t)p->code,
	};
	long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);

	return r < 0 ? -errno : (int)r;
}

int filter_install(enum filter filter)
{
	return load_filter(filter, 0);
}

int filter_install_payload(int *ret_listener)
{
	int r = 0;

	*ret_listener = -1;
	if (prctl(FILTER_BENEATH, 0, 0, 0, 0) >= 0 || errno != ENOTUNIQ)
		return -ENOLINK;
	r = load_filter(FILTER_PAYLOAD, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (r >= 0) {
		*ret_listener = r; /* the kernel creates it close-on-exec */
		return 0;
	}
	/* EINVAL: kernel before 5.0. EBUSY: an outer filter already has a listener. */
	return load_filter(FILTER_PAYLOAD_QUIET, 0);
}
