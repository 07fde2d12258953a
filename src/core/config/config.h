/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: settings of the daemon: built-in defaults < YAML file < environment (MILLIBOX_*) < flags.
 * One table (config.c) gives each its key, type, range, default and help text; parsing, --help,
 * --dump-config, the man page and the error messages come from it. Immutable once loaded.
 *
 * Keys: those of settings.c. A dot in a key is a level in the file ("limits.timeout" is
 * "limits: {timeout: 30s}"); the environment variable is MILLIBOX_ and the key in capitals with
 * '_' for '.' (MILLIBOX_LIMITS_TIMEOUT). Lists are comma-separated outside the file.
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
	char *runtime_dir; /* locks of the engine */
	char *user; /* who the daemon becomes when started as root; "" for an id of its own */
	char *engine_path; /* found beside the program or at the installed place where not set */
	char *agent_path;
	char *zygote_path;
	char *runners_dir;
	char *tls_cert, *tls_key; /* PEM files; "" for none: TCP in the clear */
	bool auth_trust_socket;   /* of root and of who started us, at the Unix socket */
	char **allowed_hosts;     /* NULL-terminated: further names accepted in Host */
	char **allowed_origins;   /* NULL-terminated */
	enum log_level log_level;
	enum log_format log_format;
	enum log_level log_requests; /* the level at which each request is told */
	bool strict;
	uint64_t uid_base;

	/* HTTP */
	uint64_t max_connections;
	uint64_t max_connections_per_peer;
	uint64_t max_body_bytes;
	uint64_t max_upload_bytes;
	uint64_t max_header_bytes;
	uint64_t max_code_bytes;
	uint64_t max_answers_bytes;  /* of all answers together that wait for their readers */
	uint64_t request_timeout_us; /* from the first byte of a request to its last */
	uint64_t idle_timeout_us;

	/* admission */
	uint64_t max_running; /* 0: twice the cores */
	uint64_t max_queued;
	uint64_t drain_timeout_us; /* SIGTERM: how long running executions may take to end */

	/* programs as children of zygotes */
	bool zygotes_enabled;
	char **zygotes_modules; /* NULL-terminated */
	uint64_t zygotes_children, zygotes_memory;

	/* boxes that are made ahead */
	bool pools_enabled;
	uint64_t pools_floor, pools_session_floor, pools_max, pools_memory_bytes;
	uint64_t pools_age_us, pools_idle_us;

	/* sessions, and what is remembered of executions */
	uint64_t sessions_max;
	uint64_t session_idle_us, session_lifetime_us; /* of one that asks for none, and the most */
	uint64_t session_queue;
	uint64_t session_survive_us; /* 0: sessions end with the daemon */
	bool sessions_keep_on_stop;
	uint64_t executions_keep;
	uint64_t executions_keep_bytes;
	/* and what the store keeps of them */
	bool store_volatile;
	uint64_t retention_sessions_us, retention_executions_us;
	uint64_t retention_count, retention_bytes; /* of executions */

	/* quotas of a tenant that has none of its own set; 0: none */
	uint64_t quota_sessions, quota_executions, quota_queued;
	uint64_t quota_memory_bytes;
	uint64_t quota_requests, quota_burst; /* per second; at once */
	uint64_t quota_templates, quota_images_bytes;

	/* what may be asked for, see core/policies.h */
	char *policy_dir;         /* "": built in */
	char *policy_default;     /* name */
	char **policy_selectable; /* NULL-terminated */

	/* templates */
	char **template_dirs; /* NULL-terminated: directories whose subdirectories are roots */
	uint64_t templates_max;
	/* MCP */
	bool mcp_enabled;
	char **mcp_enabled_tools, **mcp_disabled_tools; /* NULL-terminated; none enabled: all */
	uint64_t mcp_text_bytes;
	/* imports of images: how many at once, and what one may have */
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
 * line and key; an unknown key is one. Return: owned, or NULL with *err.
 */
struct config *config_load(const char *path, const struct config_override *overrides,
                           size_t overrides_count, struct error *err) attr_owned(config_free);
/** config_parse - as config_load, of a file's content (NULL: no file) called @name in errors. */
struct config *config_parse(const char *data, size_t len, const char *name,
                            const struct config_override *overrides, size_t overrides_count,
                            struct error *err) attr_owned(config_free);
/** config_dump - as YAML that config_load takes, with the help text of each key as a comment. */
void config_dump(const struct config *c, FILE *out);
/** config_help - one line per key: name, default, environment variable, what it is. */
void config_help(FILE *out);
