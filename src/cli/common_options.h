/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: options shared by commands. */

#include "cli/client/daemon.h"
#include "cli/options.h"
#include <stdbool.h>

/* For a request with a printed response. */
struct common_options {
	struct daemon_options at;
	bool json;
};

/* clang-format off */

#define ENDPOINT_ROWS(offset) \
	{"socket",  0, OPTION_TEXT, (offset) + offsetof(struct daemon_options, socket),  "PATH", "the daemon's Unix socket"}, \
	{"url",     0, OPTION_TEXT, (offset) + offsetof(struct daemon_options, url),     "URL",  "the daemon's address: https://box.example:8000"}, \
	{"ca-file", 0, OPTION_TEXT, (offset) + offsetof(struct daemon_options, ca_file), "FILE", "trust these CA certificates (PEM) for https; default: the system's"}

/* Of commands that start a daemon if none listens. */
#define ISOLATION_ROW(offset) \
	{"isolation", 0, OPTION_TEXT, (offset) + offsetof(struct daemon_options, isolation), "MODE", "isolation of the daemon: strict (the default), or best-effort, which accepts what the host lacks"}

#define COMMON_ROWS(offset) \
	{"json", 0, OPTION_FLAG, (offset) + offsetof(struct common_options, json), NULL, "print the daemon's response as JSON"}, \
	ENDPOINT_ROWS((offset) + offsetof(struct common_options, at))

/* @AT_: offset of a member of struct run_options. */
#define LIMIT_ROWS(AT_) \
	{"memory",    'm', OPTION_SIZE,   AT_(memory_bytes),   "SIZE",  "memory limit: 512Mi, 1Gi"}, \
	{"cpu",       0,   OPTION_CPU,    AT_(cpu_millicores), "CORES", "CPU limit: 1, 0.5, 500m"}, \
	{"disk",      0,   OPTION_SIZE,   AT_(disk_bytes),     "SIZE",  "disk limit: 256Mi"}, \
	{"processes", 0,   OPTION_NUMBER, AT_(processes),      "N",     "limit of processes and threads"}
#define OUTPUT_ROW(AT_) {"max-output", 0, OPTION_SIZE, AT_(output_bytes), "SIZE", "output limit of each stream: 1Mi"}
#define ENV_ROW(AT_) {"env", 'e', OPTION_LIST, AT_(env), "NAME=VALUE", "set an environment variable; may be repeated"}
#define POLICY_ROWS(AT_) \
	{"engine",  0, OPTION_TEXT, AT_(engine),  "NAME", "engine that makes the box, see 'millibox doctor'; auto: the first that will do"}, \
	{"min-isolation", 0, OPTION_TEXT, AT_(min_isolation), "GRADE", "least grade of isolation: namespace, gvisor or vm"}, \
	{"policy",  0, OPTION_TEXT, AT_(policy),  "NAME", "apply this policy in addition to your own"}, \
	{"network", 0, OPTION_TEXT, AT_(network), "MODE", "network of the box: none, allowlist, bridge or host"}, \
	{"allow",   0, OPTION_LIST, AT_(network_allow), "HOST", "let the program reach this host, or registry (pypi, npm ...), and no other; may be repeated"}, \
	{"secret",  0, OPTION_LIST, AT_(secrets), "NAME", "let the program use this secret; may be repeated"}, \
	{"mcp",     0, OPTION_LIST, AT_(mcp),     "SERVER[/TOOL]", "let the program call tools of an outside MCP server; may be repeated"}
/* clang-format on */
