/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the daemon's directories. Created if missing; never used if another user could put files
 * there under our names. Runs before privileges are dropped.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stdbool.h>
#include <sys/types.h>

/**
 * home_open_state - create @dir and lock it against a second daemon. Return: 0 with the lock, held
 * until *ret_fd is closed; or -1 with *err.
 */
int home_open_state(const char *dir, int *ret_fd, struct error *err) attr_must_check;
/**
 * home_make_bases - directories whose subdirectories may be roots: the one in @dir for imported
 * ones, which is created, then the operator's. @ret_bases: owned, NULL-terminated, set also on
 * failure.
 */
int home_make_bases(const char *dir, char *const *operators, char ***ret_bases,
                    struct error *err) attr_must_check;
/* The key that signs receipts, in the state directory. */
#define HOME_SEAL_NAME "receipt.key"
#define HOME_NAME_LEN  32
/** home_name - the state directory's random name, written once into its lock @fd. */
int home_name(int fd, char ret_name[HOME_NAME_LEN + 1], struct error *err) attr_must_check;
/** home_give_state - chown the directory of lock @fd and its database. */
int home_give_state(const char *dir, int fd, uid_t uid, gid_t gid,
                    struct error *err) attr_must_check;
/**
 * home_state_failed - root switched to the id that owns @dir, and something in it could not be
 * opened: add advice to @err. Return: -1.
 */
int home_state_failed(const char *dir, struct error *err);
/**
 * home_make_parent - create the directory of @path. An existing one must belong to root or @own,
 * the daemon's current or future id, and let no one else rename in it. @shared: other users may
 * pass through one that it creates.
 */
int home_make_parent(const char *path, uid_t own, bool shared, struct error *err) attr_must_check;
/** home_share_socket - let members of @gid connect to @path; (gid_t)-1: no change. */
int home_share_socket(const char *path, gid_t gid, struct error *err) attr_must_check;
