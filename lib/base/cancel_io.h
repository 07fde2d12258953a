/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: reads and writes that end when another descriptor becomes readable: a signal descriptor of
 * the command line, or the event of millibox_cancel.
 */

#include "base/attr.h"
#include <stddef.h>
#include <sys/types.h>

/**
 * cancel_write - write all of @data unless @cancel_fd becomes readable, even if the reader is
 * stuck. Return: 0, -ECANCELED, or a negative errno (-EPIPE).
 */
int cancel_write(int cancel_fd, int out, const char *data, size_t len) attr_must_check;
/**
 * cancel_read - wait for data unless @cancel_fd becomes readable. Return: bytes, 0 at EOF,
 * -ECANCELED, or a negative errno.
 */
ssize_t cancel_read(int cancel_fd, int in, char *data, size_t size) attr_must_check;
