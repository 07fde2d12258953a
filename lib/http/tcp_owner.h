/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: which user has the other end of a TCP connection, from the kernel's socket table
 * (sock_diag). Finds only sockets of this host and of the network namespace that the descriptor was
 * opened in.
 */

#include "base/attr.h"

/** tcp_owner_open - needs no privilege. Return: a descriptor for tcp_owner_find, or -errno. */
int tcp_owner_open(void) attr_must_check;
/**
 * tcp_owner_find - the user who created the socket that @conn is connected to. One round trip
 * through the kernel, no waiting. Return: 0, or -ENOENT: not found, closed already, or a user that
 * this user namespace does not know; or another errno.
 */
int tcp_owner_find(int diag, int conn, unsigned *ret_uid) attr_must_check;
