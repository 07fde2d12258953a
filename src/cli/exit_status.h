/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: exit statuses of millibox, and how errors and results of executions map to them. */

#include "base/attr.h"
#include <jansson.h>

struct error;

/* The status of a program passes through "run" unchanged. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1,      /* a check failed: doctor, audit verify, policy check and explain */
	CLI_USAGE = 2,       /* invalid command line */
	CLI_TIMED_OUT = 124, /* the program reached its time limit */
	CLI_ERROR = 125,     /* Millibox failed, not the program */
	CLI_SIGNAL = 128,    /* plus the signal number */
};

/** exit_status_of_error - CLI_USAGE for ERR_INVALID, else CLI_ERROR. */
int exit_status_of_error(const struct error *err);
/**
 * exit_status_of_result - the program's own status, 128 + its signal, or 124 for a time-out; 125 if
 * the result does not say how the program ended.
 */
int exit_status_of_result(const json_t *result);
/** exit_status_of_problem - for an error object of the API: 2 if an option's value is invalid. */
int exit_status_of_problem(const json_t *problem);
/** exit_status_explain - print to stderr which limit stopped the program or cut its output. */
void exit_status_explain(const json_t *result);
