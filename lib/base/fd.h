/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the only place that creates descriptors; all are close-on-exec. Plain functions: >= 0 or a
 * negative errno.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct iovec;
struct pollfd;
struct ucred;

void fd_closep(int *fd);
#define cleanup_close attr_cleanup(fd_closep)
/** fd_close - unless negative; preserves errno. Return: always -1. */
int fd_close(int fd);

int fd_open(const char *path, int flags, unsigned mode) attr_must_check;
int fd_open_at(int dir, const char *path, int flags, unsigned mode) attr_must_check;
/**
 * fd_open_beneath - open @path below @dir: no symbolic link, no "..", no other mount. An attacker
 * who swaps a component for a link gets ELOOP or EXDEV.
 */
int fd_open_beneath(int dir, const char *path, int flags, unsigned mode) attr_must_check;
/**
 * fd_open_inside - like fd_open_beneath, but follows relative symbolic links that stay below @dir,
 * none of procfs.
 */
int fd_open_inside(int dir, const char *path, int flags, unsigned mode) attr_must_check;
int fd_pipe(int ret_fds[2], int flags) attr_must_check;
int fd_socketpair(int type, int ret_fds[2]) attr_must_check;
int fd_socket(int domain, int type, int protocol) attr_must_check;
int fd_accept(int fd) attr_must_check; /* non-blocking as well */
int fd_memfd(const char *name, unsigned flags) attr_must_check;
/** fd_signalfd - non-blocking; blocks the signals first. */
int fd_signalfd(const int *signals, size_t count) attr_must_check;
int fd_epoll(void) attr_must_check;
int fd_dup(int fd) attr_must_check; /* never 0, 1 or 2 */
/**
 * fd_terminal - a new pseudo terminal of @ptmx. Both ends become no process's terminal by being
 * opened. Return: the controlling end, non-blocking.
 */
int fd_terminal(const char *ptmx, int *ret_end) attr_must_check;
int fd_pidfd_open(pid_t pid) attr_must_check;
int fd_pidfd_kill(int pidfd, int signo);
/**
 * fd_peer_pidfd - of the process at the other end of a Unix socket: the one that connected, or
 * listened. By SO_PEERPIDFD; a kernel before 6.5 has only its number, which may be another's by
 * now.
 */
int fd_peer_pidfd(int sock) attr_must_check;
int fd_eventfd(void) attr_must_check; /* non-blocking */
int fd_inotify(void) attr_must_check; /* non-blocking */

int fd_set_nonblock(int fd, bool on) attr_must_check;

/** fd_write_all / fd_read_all - retry short counts and EINTR. */
int fd_write_all(int fd, const void *data, size_t len) attr_must_check;
/** fd_read_all - Return: bytes read; less than @len only at EOF. */
ssize_t fd_read_all(int fd, void *data, size_t len) attr_must_check;

#define FD_PASS_MAX 9
/** fd_send - one message on a Unix socket; the caller keeps the descriptors. */
int fd_send(int sock, const void *data, size_t len, const int *fds, size_t count) attr_must_check;
/**
 * fd_recv - one message and up to FD_PASS_MAX descriptors. @ret_fds NULL: reject a message with
 * descriptors. Return: bytes, 0 at EOF, or a negative errno (-EMSGSIZE if truncated, with all
 * descriptors closed).
 */
ssize_t fd_recv(int sock, void *data, size_t size, int *ret_fds, size_t *ret_count) attr_must_check;
/**
 * fd_recv_from - like fd_recv; with SO_PASSCRED the kernel sets *ret_sender, in our namespaces.
 * @ret_fds must not be NULL.
 */
ssize_t fd_recv_from(int sock, const struct iovec *into, int *ret_fds, size_t *ret_count,
                     struct ucred *ret_sender) attr_must_check;
/**
 * fd_recv_plain - receive one message and drop its descriptors. With MSG_TRUNC in @flags: the
 * length of the whole message. Return: bytes, 0 at EOF, or a negative errno.
 */
ssize_t fd_recv_plain(int sock, void *data, size_t size, int flags) attr_must_check;
