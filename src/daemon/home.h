/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: the directories of the daemon. Made where missing, never used where somebody else could put
 * other files under our names. Before privileges are given up.
 */

#include "base/attr.h"
#include "base/error.h"
#include <sys/types.h>

/**
 * home_open_state - make @dir, and lock it for this process: two daemons must not share one.
 * Return: 0 and the lock, held until *ret_fd is closed; -1 with *err.
 */
int home_open_state(const char *dir, int *ret_fd, struct error *err) attr_must_check;
/** home_roots - where imported roots are below the state directory @dir; owned. */
char *home_roots(const char *dir) attr_must_check;
int home_make_roots(const char *dir, struct error *err) attr_must_check;
#define HOME_NAME_LEN 32
/**
 * home_name - what this state directory is known by, for as long as it exists, whatever it is
 * called: written into its lock @fd once.
 */
int home_name(int fd, char ret_name[HOME_NAME_LEN + 1], struct error *err) attr_must_check;
/**
 * home_give_state - the directory of the lock @fd, and the database in it, belong to @uid and @gid
 * from now on.
 */
int home_give_state(const char *dir, int fd, uid_t uid, gid_t gid,
                    struct error *err) attr_must_check;
/**
 * home_state_failed - after root has become the id that @dir was given to, something in it could
 * not be opened: tell in @err what to do. Return: always -1.
 */
int home_state_failed(const char *dir, struct error *err);
/**
 * home_make_parent - the directory that @path is to be in. An existing one must belong to root or
 * to
 * @own, the id that the daemon has or will have, and must not let others rename in it.
 */
int home_make_parent(const char *path, uid_t own, struct error *err) attr_must_check;
