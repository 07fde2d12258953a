/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: settings + request + language + what the driver can guarantee -> everything about one
 * execution, or a refusal that names the field. A pure function: no clock, no file, no state.
 * Nothing later looks at limits, names or variables of the request again.
 *
 * A limit asked for above the operator's maximum is clamped to it; one too small to run anything is
 * refused. 0 is "not asked for" in struct exec_request: that a caller wrote 0 only the decoder
 * knows.
 */

#include "base/error.h"
#include "driver/box_spec.h"
#include "driver/driver.h"
#include <stddef.h>
#include <stdint.h>

struct config;
struct exec_request;
struct runner;
struct runners;

#define POLICY_ARGS_MAX       256
#define POLICY_ARGS_BYTES     (32 * 1024)
#define POLICY_ENV_MAX        256
#define POLICY_ENV_BYTES      (32 * 1024)
#define POLICY_FILES_MAX      256
#define POLICY_NAME_BYTES     4096
#define POLICY_NAME_PART      255
#define POLICY_NAME_PARTS     32
#define POLICY_MEMORY_MIN     (16ULL * 1024 * 1024)
#define POLICY_DISK_MIN       (1024ULL * 1024)
#define POLICY_CPU_MIN        10 /* thousandths of a core: 1 ms of every 100 */
#define POLICY_PROCESSES_MIN  16
#define POLICY_TIMEOUT_MIN_US 1000
#define POLICY_REPORT_BYTES   (4 * 1024 * 1024)

/* What decisions depend on besides the request. All borrowed. */
struct policy_rules {
	const struct config *config;
	const struct runners *runners;
	const struct driver_caps *caps;
	unsigned cores;
};

struct policy_decision {
	struct box_spec spec;        /* its id is the caller's to choose */
	const struct runner *runner; /* borrowed from the runners */
	char **argv;                 /* owned, NULL-terminated */
	char **env;                  /* owned, NULL-terminated */
	uint64_t timeout_us;
	uint64_t output_bytes; /* per stream */
	uint32_t report_bytes; /* 0: the runner does not report */
	bool handler;          /* more is asked of the runner than to run the code */
};

/** policy_decide - Return: 0; or -1 with the field in *err and nothing in @ret_decision. */
int policy_decide(const struct policy_rules *rules, const struct exec_request *request,
                  struct policy_decision *ret_decision, struct error *err) attr_must_check;
/**
 * policy_decide_box - as policy_decide, of a session: limits, environment and layers of a box whose
 * code is still to come. argv stays NULL; code, files and arguments of @request are not looked at.
 */
int policy_decide_box(const struct policy_rules *rules, const struct exec_request *request,
                      struct policy_decision *ret_decision, struct error *err) attr_must_check;
/** policy_argv - @command of @r for the code called @source; owned. @args may be NULL. */
char **policy_argv(const struct runner *r, char *const *command, const char *source,
                   char *const *args) attr_must_check;
void policy_decision_done(struct policy_decision *d);

/** policy_check_name - a file name of a request (FA-4). Return: 0 or -EINVAL. */
int policy_check_name(const char *name) attr_must_check;
/** policy_check_variable - "NAME=value" from a caller. Return: 0, -EINVAL (no name), -EPERM
 * (a variable that makes a loader or interpreter run or read something). */
int policy_check_variable(const char *variable) attr_must_check;
