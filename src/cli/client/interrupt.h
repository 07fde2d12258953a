/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: terminating signals as a descriptor. After interrupt_open they no longer end the process:
 * every wait must include it.
 */

#include "base/attr.h"
#include "base/error.h"

/** interrupt_open - for SIGINT, SIGTERM and SIGHUP; SIGPIPE is ignored. Return: fd, or -1. */
int interrupt_open(struct error *err) attr_must_check;
/** interrupt_taken - without waiting. Return: signal number, or 0. */
int interrupt_taken(int fd);
