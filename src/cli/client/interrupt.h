/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: Ctrl-C and its relatives as a descriptor. From interrupt_open on these signals no longer end
 * the process: whoever waits for something waits for this descriptor too.
 */

#include "base/attr.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** interrupt_open - SIGINT, SIGTERM, SIGHUP; SIGPIPE is ignored. Return: fd or a negative errno. */
int interrupt_open(void) attr_must_check;
/** interrupt_taken - the signal that came, or 0. Does not wait. */
int interrupt_taken(int fd);
/**
 * interrupt_write - write all of @data to @out unless a signal comes first, also when @out's reader
 * is stuck. Return: 0, -ECANCELED, or the negative errno of the write (-EPIPE).
 */
int interrupt_write(int fd, int out, const char *data, size_t len) attr_must_check;
/**
 * interrupt_read - what @in has, once it has something, unless a signal comes first. Return: bytes,
 * 0 at its end, -ECANCELED, or the negative errno of the read.
 */
ssize_t interrupt_read(int fd, int in, char *data, size_t size) attr_must_check;
