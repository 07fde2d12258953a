/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: settings of the daemon: built-in defaults < YAML file < environment (MILLIBOX_*) < flags.
 * One table (settings.c) gives each key its type, range, default and help text; parsing, --help,
 * --dump-config, the man page and the error messages come from it. Immutable once loaded.
 *
 * A dot in a key is a level in the file ("limits.timeout" is "limits: {timeout: 30s}"); the
 * environment variable is MILLIBOX_ and the key in capitals with '_' for '.'
 * (MILLIBOX_LIMITS_TIMEOUT). Lists are comma-separated outside the file.
 */

#include "base/error.h"
#include "base/log.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct config {
	char *listen; /* "127.0.0.1:8000"; "" for none */
	char *socket; /* Unix socket path; "" for none */
	char *state_dir;
	char *runtime_dir; /* the engine's locks */
	char *user;        /* user the daemon runs as when started as root; "": an id of its own */
	char *engine_path; /* unset: beside the daemon, or as installed */
	char *agent_path;
	char *zygote_path;
	char *runners_dir;
	char *tls_cert, *tls_key; /* PEM files; "": TCP without TLS */
	bool auth_trust_socket;   /* on the Unix socket, for root and the starting user */
	char **allowed_hosts;     /* NULL-terminated: additional names accepted in Host */
	char **allowed_origins;   /* NULL-terminated */
	enum log_level log_level;
	enum log_format log_format;
	enum log_level log_requests; /* level at which each request is logged */
	bool strict;
	uint64_t uid_base;

	/* HTTP */
	uint64_t max_connections;
	uint64_t max_connections_per_peer;
	uint64_t max_body_bytes;
	uint64_t max_upload_bytes;
	uint64_t max_header_bytes;
	uint64_t max_code_bytes;
	uint64_t max_answers_bytes;  /* all responses waiting for their readers together */
	uint64_t request_timeout_us; /* from the first byte of a request to its last */
	uint64_t idle_timeout_us;

	/* admission */
	uint64_t max_running; /* 0: twice the cores */
	uint64_t max_queued;
	uint64_t drain_timeout_us; /* on SIGTERM: how long running executions may take to end */

	/* fork programs from zygotes */
	bool zygotes_enabled;
	char **zygotes_modules; /* NULL-terminated */
	uint64_t zygotes_children, zygotes_memory;

	/* boxes created ahead of demand */
	bool pools_enabled;
	uint64_t pools_floor, pools_session_floor, pools_max, pools_memory_bytes;
	uint64_t pools_age_us, pools_idle_us;

	/* sessions, and executions kept in memory */
	uint64_t sessions_max;
	uint64_t session_idle_us, session_lifetime_us; /* default, and the maximum */
	uint64_t session_queue;
	uint64_t session_survive_us; /* 0: sessions end with the daemon */
	bool sessions_keep_on_stop;
	uint64_t executions_keep;
	uint64_t executions_keep_bytes;
	/* what the store keeps */
	bool store_volatile;
	uint64_t retention_sessions_us, retention_executions_us;
	uint64_t retention_count, retention_bytes; /* executions */

	/* default quotas of a tenant; 0: unlimited */
	uint64_t quota_sessions, quota_executions, quota_queued;
	uint64_t quota_memory_bytes;
	uint64_t quota_requests, quota_burst; /* per second; at once */
	uint64_t quota_templates, quota_images_bytes;

	/* what callers may request, see core/policy/policies.h */
	char *policy_dir;         /* "": built-in policies */
	char *policy_default;     /* name */
	char **policy_selectable; /* NULL-terminated */

	/* templates */
	char **template_dirs; /* NULL-terminated: directories whose subdirectories are roots */
	uint64_t templates_max;
	/* MCP */
	bool mcp_enabled;
	char **mcp_enabled_tools,
		**mcp_disabled_tools; /* NULL-terminated; empty enabled list: all */
	uint64_t mcp_text_bytes;
	/* image imports: how many at once, and the limits of each */
	uint64_t imports_max, imports_max_tenant;
	uint64_t import_archive_bytes, import_root_bytes, import_file_bytes;
	uint64_t import_entries, import_layers;
	uint64_t import_memory_bytes, import_cpu_us;
	uint64_t mcp_sessions, mcp_tenant_sessions, mcp_session_us, mcp_buffers_bytes;
	/* audit */
	bool audit_enabled, audit_required;
	char *audit_path; /* "": audit.log in the state directory */
	uint64_t audit_max_bytes, audit_keep;

	/* limits of an execution: default and maximum */
	uint64_t timeout_us, timeout_max_us;
	uint64_t memory_bytes, memory_max_bytes;
	uint64_t disk_bytes, disk_max_bytes;
	uint64_t cpu_millicores, cpu_max_millicores; /* maximum 0: all cores */
	uint64_t processes, processes_max;
	uint64_t output_bytes, output_max_bytes;
};

/* One "key=value" from the command line; keys are those of the file. */
struct config_override {
	const char *key;
	const char *value;
};

void config_free(struct config *c);
static inline void config_freep(struct config **c)
{
	config_free(*c);
}
/**
 * config_load - @path may be NULL (defaults, environment and @overrides only). Errors name file,
 * line and key; an unknown key is an error. Return: owned, or NULL with *err.
 */
struct config *config_load(const char *path, const struct config_override *overrides,
                           size_t overrides_count, struct error *err) attr_owned(config_free);
/** config_parse - like config_load for a file's content (NULL: no file), called @name in errors. */
struct config *config_parse(const char *data, size_t len, const char *name,
                            const struct config_override *overrides, size_t overrides_count,
                            struct error *err) attr_owned(config_free);
/** config_dump - YAML that config_load accepts, with the help text of each key as a comment. */
void config_dump(const struct config *c, FILE *out);
/** config_help - one line per key: name, default, environment variable, help text. */
void config_help(FILE *out);
