/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: terminating signals as a descriptor. After interrupt_open they no longer end the process:
 * every wait must include this descriptor.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>
#include <sys/types.h>

/** interrupt_open - for SIGINT, SIGTERM and SIGHUP; SIGPIPE is ignored. Return: fd, or -1. */
int interrupt_open(struct error *err) attr_must_check;
/** interrupt_taken - read a pending signal without waiting. Return: its number, or 0. */
int interrupt_taken(int fd);
/**
 * interrupt_write - write all of @data to @out, unless a signal arrives first, even if the reader
 * of
 * @out is stuck. Return: 0, -ECANCELED, or the negative errno of the write (-EPIPE).
 */
int interrupt_write(int fd, int out, const char *data, size_t len) attr_must_check;
/**
 * interrupt_read - wait for data on @in, unless a signal arrives first. Return: bytes, 0 at EOF,
 * -ECANCELED, or the negative errno of the read.
 */
ssize_t interrupt_read(int fd, int in, char *data, size_t size) attr_must_check;
