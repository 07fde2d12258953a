/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: terminating signals as a descriptor. After interrupt_open they no longer end the process:
 * every wait must include it.
 */

#include "base/attr.h"
#include "base/error.h"
#include <stddef.h>
#include <sys/types.h>

/** interrupt_open - for SIGINT, SIGTERM and SIGHUP; SIGPIPE is ignored. Return: fd, or -1. */
int interrupt_open(struct error *err) attr_must_check;
/** interrupt_taken - without waiting. Return: signal number, or 0. */
int interrupt_taken(int fd);
/**
 * interrupt_write - write all of @data unless a signal arrives, even if the reader is stuck.
 * Return: 0, -ECANCELED, or a negative errno (-EPIPE).
 */
int interrupt_write(int fd, int out, const char *data, size_t len) attr_must_check;
/**
 * interrupt_read - wait for data unless a signal arrives. Return: bytes, 0 at EOF, -ECANCELED, or a
 * negative errno.
 */
ssize_t interrupt_read(int fd, int in, char *data, size_t size) attr_must_check;
