/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: our terminal as that of an execution, over a WebSocket, until the execution ends or a signal
 * ends us. Keys, including Ctrl-C, go to the program; the size follows that of our terminal.
 */

#include "base/attr.h"
#include "base/error.h"
#include <jansson.h>

struct millibox_client;

/** attach_size - of our terminal; 24 by 80 if it has none. */
void attach_size(int *ret_rows, int *ret_cols);
/**
 * attach_run - Return: 0 with the owned object "exit" in *ret_exit, a signal's number that ended
 * us, or -1. Our terminal is as before in every case.
 */
int attach_run(struct millibox_client *client, const char *execution_id, json_t **ret_exit,
               struct error *err) attr_must_check;
