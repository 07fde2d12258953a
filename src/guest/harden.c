/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/harden.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/filter.h"
#include "wire/layer.h"

#define KEPT_CAPS ((1u << CAP_SETUID) | (1u << CAP_SETGID) | (1u << CAP_KILL))
#define CAPS_END  64 /* the kernel returns EINVAL for unknown ones */

#define SECUREBITS                                                                                 \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                           \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |   \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* Kernel numbers; libc reserves some, so make the system call directly. */
#define SIGNALS_END 64

void harden_signals(void)
{
	/* A kernel sigaction: handler SIG_DFL, no flags, empty mask. */
	const unsigned long dfl[4] = {0};
	sigset_t none;

	for (int sig = 1; sig <= SIGNALS_END; sig++)
		(void)syscall(SYS_rt_sigaction, sig, dfl, NULL, sizeof(unsigned long));
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* A payload that closes a pipe must not kill PID 1. */
	(void)signal(SIGPIPE, SIG_IGN);
}

/* Return: whether the bounding set is empty. */
static bool drop_bounding_set(void)
{
	bool empty = true;

	for (unsigned long cap = 0; cap < CAPS_END; cap++) {
		int r = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (r < 0)
			break;
		if (r > 0 && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			empty = false;
	}
	return empty;
}

static int reduce_caps(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	data[0].permitted &= KEPT_CAPS;
	data[0].effective = data[0].permitted;
	data[1].permitted = data[1].effective = 0;
	data[0].inheritable = data[1].inheritable = 0;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/* The bounding set and the securebits need CAP_SETPCAP, which reduce_caps drops. */
int harden_caps(bool *ret_empty)
{
	bool empty = drop_bounding_set();
	int r = 0;

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* Fails without CAP_SETPCAP; then nothing needs guarding. EINVAL: gVisor has none of these
	 * bits; there the empty bounding set and no_new_privs are what keeps capabilities away. */
	if (prctl(PR_SET_SECUREBITS, SECUREBITS, 0, 0, 0) < 0 && errno != EPERM && errno != EINVAL)
		return -errno;
	r = reduce_caps();
	*ret_empty = empty;
	return r;
}

int harden_self(uint32_t lacks, uint32_t *ret_layers, struct error *err)
{
	bool no_caps = false;
	int r = 0;

	harden_signals();
	(void)umask(0); /* modes are explicit */
	/* Untraceable; its /proc entries belong to no id of the payload. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "make the agent not dumpable");
	r = harden_caps(&no_caps);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "drop the agent's capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "set no_new_privs");
	r = filter_install(FILTER_AGENT);
	if (r < 0 && !(lacks & LAYER_BIT(LAYER_SECCOMP)))
		return error_set(err, ERR_BOX_FAILED, -r, "install the agent's seccomp filter");
	*ret_layers = LAYER_BIT(LAYER_NO_NEW_PRIVS) | (r < 0 ? 0 : LAYER_BIT(LAYER_SECCOMP)) |
	              (lacks & LAYER_BIT(LAYER_RLIMITS) ? 0 : LAYER_BIT(LAYER_RLIMITS)) |
	              (no_caps ? LAYER_BIT(LAYER_CAPS) : 0);
	return 0;
}
