/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters as the kernel would run them: a small interpreter of classic BPF evaluates the
 * generated programs for calls, arguments and architectures.
 */
#include "unit.h"

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "guest/filter.h"

#define ARGS  4
#define X32   0x40000000u
#define UPPER 0xdeadbeef00000000ull

#define ALLOW    SECCOMP_RET_ALLOW
#define NOTIFY   SECCOMP_RET_USER_NOTIF
#define ERR(sys) (SECCOMP_RET_ERRNO | (sys))

static bool takes_jump(uint16_t code, uint32_t acc, uint32_t k)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return acc == k;
	case BPF_JGE:
		return acc >= k;
	default:
		fail_msg("jump 0x%x is not made by the compiler", code);
		return false;
	}
}

static bool looked_at_arguments; /* since it was last reset */

static uint32_t evaluate(enum filter filter, const struct seccomp_data *data)
{
	const struct filter_program *p = &filter_programs[filter];
	uint32_t acc = 0;

	for (unsigned pc = 0; pc < p->len; pc++) {
		const struct sock_filter *i = &p->code[pc];
		if (i->code == (BPF_LD | BPF_W | BPF_ABS)) {
			assert_true(i->k + 4 <= sizeof(*data) && i->k % 4 == 0);
			memcpy(&acc, (const char *)data + i->k, sizeof(acc));
			looked_at_arguments |= i->k >= offsetof(struct seccomp_data, args);
		} else if (i->code == (BPF_ALU | BPF_AND | BPF_K)) {
			acc &= i->k;
		} else if (i->code == (BPF_JMP | BPF_JA)) {
			pc += i->k;
		} else if (BPF_CLASS(i->code) == BPF_JMP) {
			pc += takes_jump(i->code, acc, i->k) ? i->jt : i->jf;
		} else if (i->code == (BPF_RET | BPF_K)) {
			return i->k;
		} else {
			fail_msg("instruction 0x%x is not made by the compiler", i->code);
		}
	}
	fail_msg("a program without an end");
	return 0;
}

struct expectation {
	uint32_t action;
	int number;
	uint64_t args[ARGS];
};

static uint32_t ask(enum filter filter, int number, const uint64_t *args)
{
	struct seccomp_data data = {.nr = number, .arch = AUDIT_ARCH_X86_64};

	memcpy(data.args, args, ARGS * sizeof(args[0]));
	return evaluate(filter, &data);
}

/* Filters that can be beneath a payload's, which is never alone. */
static const enum filter lowers[] = {FILTER_AGENT, FILTER_ZYGOTE};

struct answer {
	uint32_t action;
	bool listened; /* it is that of the filter on top, the only one with a listener */
};

/* As the kernel does: the strictest answer counts, and of two equally strict ones the later. */
static struct answer ask_stack(const enum filter *filters, size_t count, int number,
                               const uint64_t *args)
{
	struct answer answer = {ALLOW, true};

	for (size_t i = 0; i < count; i++) {
		uint32_t action = ask(filters[i], number, args);

		if ((int32_t)(action & SECCOMP_RET_ACTION_FULL) <
		    (int32_t)(answer.action & SECCOMP_RET_ACTION_FULL))
			answer = (struct answer){action, i == 0};
	}
	return answer;
}

static uint32_t ask_payload(enum filter lower, int number, const uint64_t *args)
{
	const enum filter filters[] = {FILTER_PAYLOAD, lower};
	struct answer answer = ask_stack(filters, ARRAY_SIZE(filters), number, args);

	/* The agent would not learn of it, and the program would get ENOSYS. */
	assert_true(answer.action != NOTIFY || answer.listened);
	return answer.action;
}

static void expect(const struct expectation *e, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t quiet = ask(FILTER_PAYLOAD_QUIET, e[i].number, e[i].args);
		for (size_t j = 0; j < ARRAY_SIZE(lowers); j++) {
			uint32_t got = ask_payload(lowers[j], e[i].number, e[i].args);
			if (got != e[i].action)
				fail_msg("row %zu, call %d: 0x%x, not 0x%x", i, e[i].number, got,
				         e[i].action);
		}
		/* Without a listener the same calls are still refused. */
		assert_int_equal(quiet, e[i].action == NOTIFY ? ERR(EPERM) : e[i].action);
	}
}

static void plain_calls_are_allowed_whatever_their_arguments(void **state)
{
	static const struct expectation rows[] = {
		{ALLOW, SYS_read, {0, 1, 2}},
		{ALLOW, SYS_write, {UPPER, UPPER, UPPER}},
		{ALLOW, SYS_openat, {UPPER | 3}},
		{ALLOW, SYS_execve, {0}},
		{ALLOW, SYS_execveat, {0}},
		{ALLOW, SYS_mmap, {0, 4096, 7}},
		{ALLOW, SYS_futex, {0}},
		{ALLOW, SYS_rseq, {0}},
		{ALLOW, SYS_statx, {0}},
		{ALLOW, SYS_pidfd_open, {1}},
		{ALLOW, SYS_memfd_create, {0}},
		{ALLOW, SYS_vfork, {0}},
		{ALLOW, SYS_close_range, {3, ~0ull}},
		{ALLOW, SYS_getrandom, {0}},
		{ALLOW, SYS_capget, {0}},
		{ALLOW, SYS_pkey_alloc, {0}},
		{ALLOW, SYS_copy_file_range, {0}},
		{ALLOW, SYS_membarrier, {0}},
		{ALLOW, 449 /* futex_waitv */, {0}},
		{ALLOW, 452 /* fchmodat2 */, {0}},
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void foreign_architectures_are_killed(void **state)
{
	static const uint32_t foreign[] = {AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64, AUDIT_ARCH_ARM, 0,
	                                   ~0u};

	(void)state;
	for (int filter = 0; filter < FILTER_COUNT; filter++) {
		for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
			const struct seccomp_data data = {.nr = SYS_read, .arch = foreign[i]};
			assert_int_equal(evaluate((enum filter)filter, &data),
			                 SECCOMP_RET_KILL_PROCESS);
		}
	}
}

static void numbers_that_are_not_in_the_table_do_not_exist(void **state)
{
	static const uint32_t numbers[] = {X32,
	                                   X32 | SYS_read,
	                                   X32 | 520,
	                                   X32 | 547,
	                                   600,
	                                   1000,
	                                   0x7fffffff,
	                                   0x80000000u,
	                                   0xffffffffu,
	                                   511,
	                                   512,
	                                   513,
	                                   SYS_vmsplice,
	                                   SYS_io_setup,
	                                   SYS_remap_file_pages,
	                                   451 /* cachestat */};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const uint64_t none[ARGS] = {0};
		int number = (int)numbers[i];

		assert_int_equal(ask(FILTER_PAYLOAD_QUIET, number, none), ERR(ENOSYS));
		assert_int_equal(ask(FILTER_AGENT, number, none), ERR(ENOSYS));
		assert_int_equal(ask(FILTER_ZYGOTE, number, none), ERR(ENOSYS));
		/* It is never alone: it leaves this to the others. */
		assert_int_equal(ask(FILTER_UNCHARGED, number, none), ALLOW);
		for (size_t j = 0; j < ARRAY_SIZE(lowers); j++)
			assert_int_equal(ask_payload(lowers[j], number, none), ERR(ENOSYS));
	}
}

static void namespaces_cannot_be_made(void **state)
{
	static const struct expectation rows[] = {
		{ALLOW, SYS_clone, {SIGCHLD}},
		{ALLOW, SYS_clone, {CLONE_VM | CLONE_VFORK | SIGCHLD}},
		{ALLOW, SYS_clone, {0x3d0f00}},
		{ALLOW, SYS_clone, {UPPER | SIGCHLD}},
		{NOTIFY, SYS_clone, {CLONE_NEWUSER | SIGCHLD}},
		{NOTIFY, SYS_clone, {CLONE_NEWNS}},
		{NOTIFY, SYS_clone, {CLONE_NEWCGROUP}},
		{NOTIFY, SYS_clone, {CLONE_NEWUTS}},
		{NOTIFY, SYS_clone, {CLONE_NEWIPC}},
		{NOTIFY, SYS_clone, {CLONE_NEWPID}},
		{NOTIFY, SYS_clone, {CLONE_NEWNET}},
		{NOTIFY, SYS_clone, {UPPER | CLONE_NEWNET}},
		{ERR(ENOSYS), SYS_clone3, {0}},
		{NOTIFY, SYS_unshare, {0}},
		{NOTIFY, SYS_setns, {0}},
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void only_harmless_sockets_are_allowed(void **state)
{
	static const struct expectation rows[] = {
		{ALLOW, SYS_socket, {AF_UNIX, SOCK_STREAM, 0}},
		{ALLOW, SYS_socket, {UPPER | AF_UNIX, SOCK_SEQPACKET, 0}},
		{ALLOW, SYS_socket, {AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 6}},
		{ALLOW, SYS_socket, {AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0}},
		{ALLOW, SYS_socket, {AF_INET, SOCK_DGRAM, 17}},
		{ALLOW, SYS_socket, {AF_INET6, SOCK_DGRAM, UPPER}},
		{ERR(EPROTONOSUPPORT), SYS_socket, {AF_INET, SOCK_STREAM, 262}},
		{NOTIFY, SYS_socket, {AF_INET, SOCK_DGRAM, 1}},
		{NOTIFY, SYS_socket, {AF_INET6, SOCK_DGRAM, 58}},
		{NOTIFY, SYS_socket, {AF_INET, SOCK_RAW, 255}},
		{NOTIFY, SYS_socket, {AF_INET, UPPER | SOCK_RAW, 0}},
		{NOTIFY, SYS_socket, {AF_INET, SOCK_SEQPACKET, 132}},
		{ALLOW, SYS_socket, {AF_NETLINK, SOCK_RAW, 0}},
		{NOTIFY, SYS_socket, {AF_NETLINK, SOCK_RAW, 12}},
		{NOTIFY, SYS_socket, {AF_NETLINK, SOCK_RAW, UPPER | 9}},
		{ALLOW, SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0}},
		{NOTIFY, SYS_socketpair, {AF_TIPC, SOCK_STREAM, 0}},
		{ALLOW, SYS_setsockopt, {3, SOL_SOCKET, SO_REUSEADDR}},
		{NOTIFY, SYS_setsockopt, {3, 6, 31}},
		{NOTIFY, SYS_setsockopt, {3, UPPER | 6, UPPER | 31}},
		{NOTIFY, SYS_setsockopt, {3, SOL_SOCKET, SO_ATTACH_FILTER}},
		{ALLOW, SYS_setsockopt, {3, 6, 1}},
		{ERR(ENODEV), SYS_setsockopt, {3, 0, 35}},
		{ERR(ENODEV), SYS_setsockopt, {3, UPPER | 41, UPPER | 20}},
		{ALLOW, SYS_setsockopt, {3, 0, 1}},
		{ERR(ENOPROTOOPT), SYS_getsockopt, {3, SOL_SOCKET, 71}},
		{ALLOW, SYS_getsockopt, {3, SOL_SOCKET, SO_ERROR}},
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
	for (uint64_t family = 0; family < 64; family++) {
		const struct expectation row = {NOTIFY, SYS_socket, {UPPER | family, SOCK_RAW, 1}};
		if (family != AF_UNIX)
			expect(&row, 1);
	}
}

static void arguments_that_are_ints_are_compared_as_such(void **state)
{
	static const struct expectation rows[] = {
		{NOTIFY, SYS_ioctl, {0, 0x5412}},
		{NOTIFY, SYS_ioctl, {0, UPPER | 0x5412}},
		{NOTIFY, SYS_ioctl, {0, 0x541c}},
		{NOTIFY, SYS_ioctl, {0, 0x5423}},
		{ALLOW, SYS_ioctl, {0, 0x5401}},
		{ALLOW, SYS_ioctl, {0, UPPER | 0x541b}},
		{ALLOW, SYS_ioctl, {0, 0x802c542a}},
		{ERR(ENOTTY), SYS_ioctl, {0, 0x40086602}},
		{ERR(ENOTTY), SYS_ioctl, {0, 0x40049409}},
		{ERR(ENOTTY), SYS_ioctl, {0, 0xc0502100}},
		{ALLOW, SYS_prctl, {PR_SET_NAME}},
		{ALLOW, SYS_prctl, {UPPER | PR_SET_DUMPABLE}},
		{ALLOW, SYS_prctl, {PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET}},
		{ERR(EINVAL), SYS_prctl, {PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE}},
		{ERR(EINVAL), SYS_prctl, {PR_SET_SECCOMP}},
		{ERR(EINVAL), SYS_prctl, {PR_CAPBSET_DROP}},
		{NOTIFY, SYS_prctl, {PR_SET_MM}},
		{ALLOW, SYS_personality, {0}},
		{ALLOW, SYS_personality, {8}},
		{ALLOW, SYS_personality, {0xffffffff}},
		{NOTIFY, SYS_personality, {0x0040000}},
		{NOTIFY, SYS_personality, {UPPER | 0x0400000}},
		{ALLOW, SYS_prlimit64, {0}},
		{ALLOW, SYS_prlimit64, {UPPER}},
		{NOTIFY, SYS_prlimit64, {1}},
		{ALLOW, SYS_mknod, {0, S_IFIFO | 0600}},
		{ALLOW, SYS_mknod, {0, 0600}},
		{NOTIFY, SYS_mknod, {0, S_IFCHR | 0600}},
		{NOTIFY, SYS_mknod, {0, UPPER | S_IFBLK}},
		{ALLOW, SYS_mknodat, {0, 0, S_IFREG}},
		{NOTIFY, SYS_mknodat, {0, 0, S_IFCHR}},
		{NOTIFY, SYS_mknodat, {0, 0, S_IFSOCK}},
		{ALLOW, SYS_sched_setscheduler, {0, SCHED_BATCH}},
		{NOTIFY, SYS_sched_setscheduler, {0, SCHED_FIFO}},
		{NOTIFY, SYS_sched_setscheduler, {0, UPPER | SCHED_RR}},
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void privileged_calls_are_refused_and_reported(void **state)
{
	static const int calls[] = {
		SYS_ptrace,
		SYS_process_vm_readv,
		SYS_process_vm_writev,
		SYS_process_madvise,
		SYS_kcmp,
		SYS_pidfd_getfd,
		SYS_perf_event_open,
		SYS_bpf,
		SYS_userfaultfd,
		SYS_keyctl,
		SYS_add_key,
		SYS_request_key,
		SYS_mount,
		SYS_umount2,
		SYS_pivot_root,
		SYS_chroot,
		SYS_fsopen,
		SYS_fsconfig,
		SYS_fsmount,
		SYS_fspick,
		SYS_open_tree,
		SYS_move_mount,
		SYS_mount_setattr,
		467 /* open_tree_attr */,
		SYS_open_by_handle_at,
		SYS_name_to_handle_at,
		SYS_init_module,
		SYS_finit_module,
		SYS_delete_module,
		SYS_kexec_load,
		SYS_kexec_file_load,
		SYS_acct,
		SYS_quotactl,
		SYS_swapon,
		SYS_swapoff,
		SYS_reboot,
		SYS_syslog,
		SYS_settimeofday,
		SYS_clock_settime,
		SYS_adjtimex,
		SYS_clock_adjtime,
		SYS_sethostname,
		SYS_setdomainname,
		SYS_iopl,
		SYS_ioperm,
		SYS_vhangup,
		SYS_fanotify_init,
		SYS_fanotify_mark,
		SYS_move_pages,
		SYS_migrate_pages,
		SYS_modify_ldt,
		SYS_ioprio_set,
		SYS_uselib,
		SYS_lookup_dcookie,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		expect(&(struct expectation){NOTIFY, calls[i], {UPPER, UPPER, UPPER}}, 1);
}

static void probed_calls_are_absent_not_fatal(void **state)
{
	static const struct expectation rows[] = {
		{ERR(ENOSYS), SYS_io_uring_setup, {0}},
		{ERR(ENOSYS), SYS_io_uring_enter, {0}},
		{ERR(ENOSYS), SYS_seccomp, {1}},
		{ERR(ENOSYS), SYS_landlock_create_ruleset, {0}},
		{ERR(EPERM), SYS_mbind, {0}},
		{ERR(0), SYS_sync, {0}},
	};

	(void)state;
	expect(rows, ARRAY_SIZE(rows));
}

static void nothing_native_is_ever_killed(void **state)
{
	static const uint64_t args[][ARGS] = {
		{0, 0, 0}, {~0ull, ~0ull, ~0ull}, {1, 1, 1}, {16, 3, 9}};

	(void)state;
	for (int filter = 0; filter < FILTER_COUNT; filter++)
		for (int number = 0; number < 1024; number++)
			for (size_t i = 0; i < ARRAY_SIZE(args); i++)
				assert_true(ask((enum filter)filter, number, args[i]) >=
				            SECCOMP_RET_ERRNO);
}

/* Every value that any filter compares with, its neighbours, and single bits. */
static size_t interesting(uint64_t *ret_values, size_t max)
{
	size_t count = 0;

	for (int filter = 0; filter < FILTER_COUNT; filter++)
		for (unsigned i = 0; i < filter_programs[filter].len; i++) {
			const struct sock_filter *insn = &filter_programs[filter].code[i];
			bool known = insn->code != (BPF_JMP | BPF_JEQ | BPF_K);

			for (size_t j = 0; j < count && !known; j++)
				known = ret_values[j] == insn->k;
			assert_true(count + 2 * 64 < max);
			if (!known)
				ret_values[count++] = insn->k;
		}
	for (int bit = 0; bit < 64; bit++)
		ret_values[count++] = 1ull << bit;
	ret_values[count++] = ~0ull;
	ret_values[count++] = UPPER;
	return count;
}

static void expect_same(uint32_t got, uint32_t whole, int number, const uint64_t *args)
{
	if (got != whole && !(got == NOTIFY && whole == ERR(EPERM)))
		fail_msg("call %d, arguments 0x%llx 0x%llx 0x%llx: 0x%x, whole 0x%x", number,
		         (unsigned long long)args[0], (unsigned long long)args[1],
		         (unsigned long long)args[2], got, whole);
}

/*
 * One call: the payload's filter on top of each other one, against the complete one; and the same
 * with the filter of uncharged boxes in between.
 */
static void expect_whole(int number, const uint64_t *args)
{
	const enum filter alone[] = {FILTER_PAYLOAD_QUIET, FILTER_UNCHARGED};
	uint32_t whole = ask(FILTER_PAYLOAD_QUIET, number, args);
	uint32_t uncharged = ask_stack(alone, ARRAY_SIZE(alone), number, args).action;

	for (size_t j = 0; j < ARRAY_SIZE(lowers); j++) {
		const enum filter three[] = {FILTER_PAYLOAD, FILTER_UNCHARGED, lowers[j]};

		expect_same(ask_payload(lowers[j], number, args), whole, number, args);
		expect_same(ask_stack(three, ARRAY_SIZE(three), number, args).action, uncharged,
		            number, args);
	}
}

/*
 * What the payload's filter leaves to the one beneath, that one decides by the same rules: both
 * together allow exactly what the whole table allows.
 */
static void two_filters_answer_like_one(void **state)
{
	static uint64_t values[1024];
	size_t count = interesting(values, ARRAY_SIZE(values));
	uint64_t calls_with_rules = 0;

	(void)state;
	for (int number = 0; number < 1024; number++) {
		uint64_t args[ARGS] = {0};

		expect_whole((int)(X32 | (unsigned)number), args);
		looked_at_arguments = false;
		expect_whole(number, args);
		if (!looked_at_arguments)
			continue;
		calls_with_rules++;
		for (size_t i = 0; i < count; i++)
			for (size_t j = 0; j < count; j++)
				for (size_t place = 0; place < 3; place++) {
					memset(args, 0, sizeof(args));
					args[place] = values[i];
					args[(place + 1) % 3] = values[j];
					expect_whole(number, args);
				}
	}
	/* socket is the only call whose rules examine three arguments */
	for (size_t i = 0; i < count; i++)
		for (uint64_t type = 0; type < 16; type++)
			for (size_t j = 0; j < count; j++)
				expect_whole(SYS_socket,
				             (uint64_t[ARGS]){values[i], type, values[j]});
	assert_in_range(calls_with_rules, 8, 64);
}

/* Without it the payload's filter is not installed. */
static void the_filter_beneath_answers_its_probe(void **state)
{
	const uint64_t args[ARGS] = {FILTER_BENEATH};

	(void)state;
	for (size_t j = 0; j < ARRAY_SIZE(lowers); j++)
		assert_int_equal(ask(lowers[j], SYS_prctl, args), ERR(ENOTUNIQ));
	assert_true(prctl(FILTER_BENEATH, 0, 0, 0, 0) < 0 && errno == EINVAL);
}

static void a_payloads_filter_is_not_installed_alone(void **state)
{
	int listener = 0;

	(void)state;
	assert_int_equal(filter_install_payload(&listener), -ENOLINK);
	assert_int_equal(listener, -1);
	assert_int_equal(prctl(PR_GET_SECCOMP), 0);
}

static void the_agent_has_what_it_needs(void **state)
{
	static const struct expectation rows[] = {
		{ALLOW, SYS_seccomp, {1}},
		{ALLOW, SYS_landlock_restrict_self, {3}},
		{ALLOW, SYS_ioctl, {3, 0xc0502100}},
		{ALLOW, SYS_ioctl, {3, 0xc0182101}},
		{ALLOW, SYS_setresuid, {1000, 1000}},
		{ALLOW, SYS_capset, {0}},
		{NOTIFY, SYS_mount, {0}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(ask(FILTER_AGENT, rows[i].number, rows[i].args), rows[i].action);
}

static void uncounted_memory_is_refused_where_it_matters(void **state)
{
	/* MAP_SHARED 1, PRIVATE 2, SHARED_VALIDATE 3; FIXED 0x10, ANONYMOUS 0x20, GROWSDOWN 0x100
	 */
	static const struct expectation rows[] = {
		{ERR(ENOMEM), SYS_mmap, {0, 4096, 3, 0x21}},
		{ERR(ENOMEM), SYS_mmap, {0, 4096, 3, 0x31}},
		{ERR(ENOMEM), SYS_mmap, {0, 4096, 3, 0x23}},
		{ERR(ENOMEM), SYS_mmap, {0, 4096, 3, UPPER | 0x40021}},
		{ERR(ENOMEM), SYS_mmap, {0, 4096, 3, 0x122}},
		{ERR(ENOMEM), SYS_mmap, {0, 4096, 0, UPPER | 0x102}},
		{ALLOW, SYS_mmap, {0, 4096, 3, 0x22}},
		{ALLOW, SYS_mmap, {0, 4096, 7, 0x20022}},
		{ALLOW, SYS_mmap, {0, 4096, 3, 0x01}},
		{ALLOW, SYS_mmap, {0, 4096, 3, 0x03}},
		{ALLOW, SYS_mmap, {0x21, 0x21, 0x21, 0x02}},
		{ERR(ENOSYS), SYS_memfd_create, {0}},
		{ERR(ENOSYS), SYS_shmget, {0}},
		{ERR(ENOSYS), SYS_semget, {0}},
		{ERR(ENOSYS), SYS_msgget, {0}},
		{ALLOW, SYS_seccomp, {1}}, /* the payload's filter comes after it */
		{ALLOW, SYS_mount, {0}},   /* and refuses this */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t got = ask(FILTER_UNCHARGED, rows[i].number, rows[i].args);
		if (got != rows[i].action)
			fail_msg("row %zu: 0x%x, not 0x%x", i, got, rows[i].action);
		/* Boxes with counted memory need none of this. */
		if (rows[i].action != ALLOW)
			assert_int_equal(ask_payload(FILTER_AGENT, rows[i].number, rows[i].args),
			                 ALLOW);
	}
}

static void programs_are_as_small_as_the_kernel_wants_them(void **state)
{
	(void)state;
	for (int filter = 0; filter < FILTER_COUNT; filter++)
		assert_in_range(filter_programs[filter].len, filter == FILTER_UNCHARGED ? 10 : 100,
		                BPF_MAXINSNS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_calls_are_allowed_whatever_their_arguments),
		cmocka_unit_test(foreign_architectures_are_killed),
		cmocka_unit_test(numbers_that_are_not_in_the_table_do_not_exist),
		cmocka_unit_test(namespaces_cannot_be_made),
		cmocka_unit_test(only_harmless_sockets_are_allowed),
		cmocka_unit_test(arguments_that_are_ints_are_compared_as_such),
		cmocka_unit_test(privileged_calls_are_refused_and_reported),
		cmocka_unit_test(probed_calls_are_absent_not_fatal),
		cmocka_unit_test(nothing_native_is_ever_killed),
		cmocka_unit_test(two_filters_answer_like_one),
		cmocka_unit_test(the_filter_beneath_answers_its_probe),
		cmocka_unit_test(a_payloads_filter_is_not_installed_alone),
		cmocka_unit_test(the_agent_has_what_it_needs),
		cmocka_unit_test(uncounted_memory_is_refused_where_it_matters),
		cmocka_unit_test(programs_are_as_small_as_the_kernel_wants_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
