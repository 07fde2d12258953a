/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: exit statuses of millibox, and how errors and results map to them. */

#include "base/attr.h"
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

struct error;

/* "run" passes the program's status through. */
enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1, /* the answer of a check is no; --apply left something out */
	CLI_USAGE = 2,  /* invalid command line */
	CLI_CUT = 123,  /* the program succeeded, but its output is not whole */
	CLI_TIMED_OUT = 124,
	CLI_ERROR = 125,  /* Millibox failed, not the program */
	CLI_SIGNAL = 128, /* plus the signal number */
};

/* The one table: --help and the manual show it. sandbox-run has its own, that of SandboxRunner. */
struct exit_row {
	const char *status;
	const char *meaning;
};

/** exit_status_row - NULL past the end. */
const struct exit_row *exit_status_row(size_t index);
void exit_status_print(FILE *out);
/** exit_status_of_error - CLI_USAGE for ERR_INVALID, else CLI_ERROR. */
int exit_status_of_error(const struct error *err);
/**
 * exit_status_of_failure - 128 + the signal that arrived at @interrupt_fd, which is no error; -1:
 * none did.
 */
int exit_status_of_failure(int interrupt_fd, struct error *err);
/**
 * exit_status_of_result - the program's status, 128 + signal, or 124 for a time-out; 125 if
 * unknown.
 */
int exit_status_of_result(const json_t *result);
/** exit_status_of_problem - the API's error object: 2 if an option's value is invalid. */
int exit_status_of_problem(const json_t *problem);
/** exit_status_explain - print which limit stopped the program or cut its output. */
void exit_status_explain(const json_t *result);
