/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: names of numbers in payload.txt, from the system's headers; newer ones by value. */

#include <errno.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "guest/filter.h"

struct name {
	const char *name;
	uint64_t value;
};

#define CLONE_NEW_ANY                                                                              \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |             \
	 CLONE_NEWPID | CLONE_NEWNET)
/* The kind of a mapping; MAP_TYPE alone is not enough. */
#define MAP_KIND       (MAP_TYPE | MAP_ANONYMOUS)
#define ANON_SHARED    (MAP_ANONYMOUS | MAP_SHARED)
#define ANON_VALIDATED (MAP_ANONYMOUS | MAP_SHARED_VALIDATE)
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif
#ifndef PER_LINUX32
#define PER_LINUX32 8
#endif
#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#ifndef TCP_ULP
#define TCP_ULP 31
#endif

/* An int is compared as the 32 bits the kernel sees. */
#define N(word)                                                                                    \
	{                                                                                          \
#word, (uint32_t)(word)                                                            \
	}

static const struct name names[] = {
	N(MAP_KIND),
	N(ANON_SHARED),
	N(ANON_VALIDATED),
	N(MAP_GROWSDOWN),
	N(ENOMEM),
	N(S_IFIFO),
	N(S_IFREG),
	N(CLONE_NEW_ANY),
	N(SCHED_OTHER),
	N(SCHED_BATCH),
	N(SCHED_IDLE),
	N(PER_LINUX32),
	N(AF_UNIX),
	N(AF_INET),
	N(AF_INET6),
	N(AF_NETLINK),
	N(SOCK_STREAM),
	N(SOCK_DGRAM),
	N(IPPROTO_IP),
	N(IPPROTO_IPV6),
	N(IPPROTO_TCP),
	N(IPPROTO_UDP),
	N(NETLINK_ROUTE),
	N(TCP_ULP),
	N(IP_ADD_MEMBERSHIP),
	N(IP_ADD_SOURCE_MEMBERSHIP),
	N(IP_MSFILTER),
	N(MCAST_JOIN_GROUP),
	N(MCAST_JOIN_SOURCE_GROUP),
	N(MCAST_MSFILTER),
	N(IPV6_JOIN_GROUP),
	N(IPV6_JOIN_ANYCAST),
	N(SO_NETNS_COOKIE),
	N(SOL_SOCKET),
	N(SECCOMP_IOCTL_NOTIF_RECV),
	N(SECCOMP_IOCTL_NOTIF_SEND),
	N(EPERM),
	N(ENOTUNIQ),
	N(EOPNOTSUPP),
	N(FILTER_BENEATH),
	N(ENODEV),
	N(ENOPROTOOPT),
	N(ENOSYS),
	N(EINVAL),
	N(ENOTTY),
	N(EPROTONOSUPPORT),
	N(FIOASYNC),
	N(FIOCLEX),
	N(FIONBIO),
	N(FIONCLEX),
	N(FIONREAD),
	N(FIOQSIZE),
	N(PR_CAPBSET_READ),
	N(PR_CAP_AMBIENT),
	N(PR_CAP_AMBIENT_CLEAR_ALL),
	N(PR_CAPBSET_DROP),
	N(PR_SET_SECUREBITS),
	N(KEYCTL_JOIN_SESSION_KEYRING),
	N(PR_CAP_AMBIENT_IS_SET),
	N(PR_GET_AUXV),
	N(PR_GET_CHILD_SUBREAPER),
	N(PR_GET_DUMPABLE),
	N(PR_GET_KEEPCAPS),
	N(PR_GET_NAME),
	N(PR_GET_NO_NEW_PRIVS),
	N(PR_GET_PDEATHSIG),
	N(PR_GET_SECCOMP),
	N(PR_GET_SECUREBITS),
	N(PR_GET_SPECULATION_CTRL),
	N(PR_GET_THP_DISABLE),
	N(PR_GET_TID_ADDRESS),
	N(PR_GET_TIMERSLACK),
	N(PR_GET_TIMING),
	N(PR_GET_TSC),
	N(PR_MCE_KILL_GET),
	N(PR_SET_CHILD_SUBREAPER),
	N(PR_SET_DUMPABLE),
	N(PR_SET_MM),
	N(PR_SET_NAME),
	N(PR_SET_NO_NEW_PRIVS),
	N(PR_SET_PDEATHSIG),
	N(PR_SET_THP_DISABLE),
	N(PR_SET_TIMERSLACK),
	N(PR_SET_VMA),
	N(SIOCATMARK),
	N(SIOCGIFADDR),
	N(SIOCGIFBRDADDR),
	N(SIOCGIFCONF),
	N(SIOCGIFFLAGS),
	N(SIOCGIFHWADDR),
	N(SIOCGIFINDEX),
	N(SIOCGIFMTU),
	N(SIOCGIFNAME),
	N(SIOCGIFNETMASK),
	N(SO_ATTACH_BPF),
	N(SO_ATTACH_FILTER),
	N(SO_ATTACH_REUSEPORT_CBPF),
	N(SO_ATTACH_REUSEPORT_EBPF),
	N(SO_LINGER),
	N(TCFLSH),
	N(TCGETS),
	N(TCSBRK),
	N(TCSETS),
	N(TCSETSF),
	N(TCSETSW),
	N(TCXONC),
	N(TIOCCONS),
	N(TIOCEXCL),
	N(TIOCGPGRP),
	N(TIOCGPTLCK),
	N(TIOCGPTN),
	N(TIOCGPTPEER),
	N(TIOCGSID),
	N(TIOCGWINSZ),
	N(TIOCLINUX),
	N(TIOCNOTTY),
	N(TIOCNXCL),
	N(TIOCOUTQ),
	N(TIOCSCTTY),
	N(TIOCSETD),
	N(TIOCSPGRP),
	N(TIOCSPTLCK),
	N(TIOCSTI),
	N(TIOCSWINSZ),
	/* <asm/termbits.h>, which defines their struct, can't be included beside <termios.h>. */
	{"TCGETS2", 0x802c542a},
	{"TCSETS2", 0x402c542b},
	{"TCSETSW2", 0x402c542c},
	{"TCSETSF2", 0x402c542d},
};
