/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/sanitized.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#define CODE_MAX 128
#define X32_BIT  0x40000000

/*
 * The engine's answer to a refused call. Without a tracer, which the same filter rules out, the
 * call fails with ENOSYS. Every box inherits the filter; unlike an errno, this answer is weaker
 * than that of the payload's own filter, which reports what it refuses.
 */
#define REFUSE SECCOMP_RET_TRACE

/* Ways into the kernel or into other processes. keyctl is handled separately. */
static const int refused[] = {
	SYS_bpf,
	SYS_perf_event_open,
	SYS_init_module,
	SYS_finit_module,
	SYS_delete_module,
	SYS_kexec_load,
#ifdef SYS_kexec_file_load
	SYS_kexec_file_load,
#endif
	SYS_ptrace,
	SYS_process_vm_readv,
	SYS_process_vm_writev,
	SYS_process_madvise,
	SYS_pidfd_getfd,
	SYS_kcmp,
	SYS_io_uring_setup,
	SYS_io_uring_enter,
	SYS_io_uring_register,
	SYS_userfaultfd,
	SYS_add_key,
	SYS_request_key,
	SYS_open_by_handle_at,
	SYS_fanotify_init,
	SYS_reboot,
	SYS_swapon,
	SYS_swapoff,
	SYS_acct,
	SYS_quotactl,
	SYS_syslog,
	SYS_settimeofday,
	SYS_clock_settime,
	SYS_adjtimex,
	SYS_clock_adjtime,
	SYS_vhangup,
#ifdef SYS_iopl
	SYS_iopl,
	SYS_ioperm,
#endif
};

static const int guard_allowed[] = {
	SYS_wait4,         SYS_kill,      SYS_unlinkat, SYS_openat,          SYS_getdents64,
	SYS_newfstatat,    SYS_fstat,     SYS_close,    SYS_clock_nanosleep, SYS_nanosleep,
	SYS_write,         SYS_read,      SYS_fcntl,    SYS_lseek,           SYS_exit_group,
	SYS_rt_sigreturn,  SYS_brk,       SYS_mmap,     SYS_munmap,          SYS_mremap,
	SYS_clock_gettime, SYS_getpid,    SYS_gettid,   SYS_rt_sigprocmask,  SYS_futex,
	SYS_faccessat2,    SYS_faccessat,
};

struct program {
	struct sock_filter code[CODE_MAX];
	unsigned short len;
};

static void emit(struct program *p, struct sock_filter insn)
{
	p->code[p->len++] = insn;
}

static void load(struct program *p, size_t offset)
{
	emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* If the value equals @k, return @action. */
static void answer(struct program *p, uint32_t k, uint32_t action)
{
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1));
	emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Calls of another architecture have other numbers: @foreign. Loads the number. */
static void begin(struct program *p, uint32_t foreign)
{
	load(p, offsetof(struct seccomp_data, arch));
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
	emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, foreign));
	load(p, offsetof(struct seccomp_data, nr));
	emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
	emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, foreign));
}

static int install(struct program *p)
{
	struct sock_fprog prog = {.len = p->len, .filter = p->code};

	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

/* A kernel in user space runs programs this way. */
static bool is_tracing(int call)
{
	return call == SYS_ptrace || call == SYS_process_vm_readv || call == SYS_process_vm_writev;
}

int filter_install_engine(bool may_trace)
{
	struct program p = {0};

	begin(&p, REFUSE);
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (!may_trace || !is_tracing(refused[i]))
			answer(&p, (uint32_t)refused[i], REFUSE);
	/* Every box joins a keyring of its own; nothing else is done with keys. */
	emit(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_keyctl, 1, 0));
	emit(&p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	load(&p, offsetof(struct seccomp_data, args[0]));
	answer(&p, KEYCTL_JOIN_SESSION_KEYRING, SECCOMP_RET_ALLOW);
	emit(&p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, REFUSE));
	return install(&p);
}

int filter_install_guard(void)
{
	struct program p = {0};

#if SANITIZED
	/* The sanitizers' run-time makes other calls. */
	return 0;
#endif
	begin(&p, SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < ARRAY_SIZE(guard_allowed); i++)
		answer(&p, (uint32_t)guard_allowed[i], SECCOMP_RET_ALLOW);
	emit(&p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
	return install(&p);
}
