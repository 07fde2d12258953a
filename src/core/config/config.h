/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: settings of the daemon: defaults < YAML file < environment < flags. settings.c has the table
 * of keys. Immutable once loaded.
 *
 * A dot in a key is a level in the file. The environment variable of "limits.timeout" is
 * MILLIBOX_LIMITS_TIMEOUT. Lists are comma-separated outside the file.
 */

#include "base/error.h"
#include "base/log.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct server_spec;

/* Which tools MCP lists, and how. */
enum config_profile {
	CONFIG_PROFILE_DEFAULT, /* few, in few words */
	CONFIG_PROFILE_FULL,
	CONFIG_PROFILE_COUNT
};

enum config_isolation {
	CONFIG_ISOLATION_STRICT,      /* refuse to start while a required layer is missing */
	CONFIG_ISOLATION_BEST_EFFORT, /* only by name: run with the layers there are */
	CONFIG_ISOLATION_COUNT
};

#define CONFIG_SETTINGS_MAX 256

struct config {
	char *listen;       /* "127.0.0.1:8000"; "" for none */
	char *socket;       /* path; "" for none */
	char *socket_group; /* name or number; "": that of the daemon's user */
	char *state_dir;
	char *runtime_dir; /* the engine's locks */
	char *user;        /* run as this user when started as root; "": an id of its own */
	char *engine_path; /* unset: beside the daemon, or as installed */
	char *agent_path;
	char *zygote_path;
	char *addon_path;
	char *runners_dir;
	uint64_t builds_cache_bytes;
	char **runner_dirs; /* NULL-terminated */
	bool runners_check;
	char *tls_cert, *tls_key; /* PEM files; "": TCP without TLS */
	bool auth_trust_socket;   /* for root and the starting user */
	char **allowed_hosts;     /* NULL-terminated: additional Host names */
	char **allowed_origins;   /* NULL-terminated */
	enum log_level log_level;
	enum log_format log_format;
	enum log_level log_requests; /* level at which each request is logged */
	enum config_isolation isolation;
	uint64_t uid_base;

	/* HTTP */
	uint64_t max_connections;
	uint64_t max_connections_per_peer;
	uint64_t max_connections_per_local_peer; /* 0: see config_local_connections */
	uint64_t max_body_bytes;
	uint64_t max_upload_bytes;
	uint64_t max_header_bytes;
	uint64_t max_code_bytes;
	uint64_t max_answers_bytes;  /* of all unread responses */
	uint64_t request_timeout_us; /* from first to last byte */
	uint64_t idle_timeout_us;

	/* admission */
	uint64_t max_running;          /* 0: boxes and memory decide */
	uint64_t max_starting;         /* 0: twice the cores */
	uint64_t memory_reserve_bytes; /* 0: a sixteenth of the memory */
	uint64_t memory_low_bytes;     /* 0: half of the reserve */
	uint64_t max_queued;
	uint64_t drain_timeout_us; /* after SIGTERM */

	bool zygotes_enabled;
	char **zygotes_modules; /* NULL-terminated */
	uint64_t zygotes_children, zygotes_memory, zygotes_age_us;

	bool pools_enabled;
	uint64_t pools_floor, pools_session_floor, pools_max, pools_memory_bytes;
	uint64_t pools_age_us, pools_idle_us;

	/* sessions, and executions in memory */
	uint64_t sessions_max;
	uint64_t session_idle_us, session_lifetime_us; /* default, and the maximum */
	uint64_t session_queue;
	uint64_t session_survive_us; /* 0: sessions end with the daemon */
	bool sessions_keep_on_stop;
	uint64_t background_output_bytes; /* of all tenants; half of it for one */
	uint64_t executions_keep;
	uint64_t executions_keep_bytes;
	/* store */
	bool store_volatile;
	uint64_t retention_sessions_us, retention_executions_us;
	uint64_t retention_count, retention_bytes; /* executions */

	/* default tenant quotas; 0: unlimited */
	uint64_t quota_sessions, quota_executions, quota_queued;
	uint64_t quota_memory_bytes;
	uint64_t quota_requests, quota_burst; /* per second; at once, 0: see tenant.c */
	uint64_t quota_templates, quota_images_bytes, quota_secrets;

	/* see core/policy/policies.h */
	char *policy_dir; /* "": built-in policies */
	char *policy_default;
	char **policy_selectable; /* NULL-terminated */

	char **template_dirs; /* NULL-terminated: parents of roots */
	uint64_t templates_max;
	enum config_profile tools_profile;
	bool mcp_enabled;
	char **mcp_enabled_tools,
		**mcp_disabled_tools; /* NULL-terminated; empty enabled list: all */
	uint64_t mcp_text_bytes;
	/* networks of boxes */
	char *egress_resolver;  /* "": the host's name servers */
	char *egress_ca_file;   /* authorities of the servers that the proxy talks to with TLS */
	char *secrets_key_file; /* "": a credential of the service, or state_dir/secrets.key */
	uint64_t egress_memory_bytes;
	uint64_t egress_connections, egress_connections_tenant, egress_opened_tenant;
	uint64_t egress_idle_us, egress_bytes, egress_rate, egress_rate_tenant;
	char **egress_pypi, **egress_npm, **egress_crates, **egress_golang, **egress_maven,
		**egress_nuget, **egress_debian, **egress_github; /* NULL-terminated: rules */
	bool bridge_enabled;
	char *bridge_subnet;
	char **bridge_allow, **bridge_resolvers; /* NULL-terminated: ranges, addresses */
	bool host_network_enabled;
	char **host_network_resolvers; /* NULL-terminated: addresses */
	/* outside MCP servers */
	struct server_spec **servers; /* owned, NULL-terminated; NULL: none */
	uint64_t gateway_timeout_us, gateway_calls, gateway_calls_tenant, gateway_calls_server;
	uint64_t gateway_memory_bytes;
	uint64_t gateway_bytes, gateway_bytes_tenant;
	uint64_t io_bytes, io_ops; /* of a tenant per second and disk; 0: unlimited */
	/* installed packages */
	char **packages_managers; /* NULL-terminated */
	char *packages_pip_url, *packages_npm_url, *packages_cargo_url, *packages_go_url,
		*packages_maven_url, *packages_nuget_url,
		*packages_apt_url; /* "": the host's own client's */
	uint64_t packages_timeout_us, packages_memory_bytes, packages_disk_bytes;
	uint64_t packages_layer_bytes, packages_tenant_bytes, packages_total_bytes;
	uint64_t packages_installs;
	/* image imports */
	uint64_t imports_max, imports_max_tenant, imports_queued;
	uint64_t import_archive_bytes, import_root_bytes, import_file_bytes;
	uint64_t import_entries, import_layers;
	uint64_t import_memory_bytes, import_cpu_us;
	uint64_t mcp_sessions, mcp_tenant_sessions, mcp_session_us, mcp_buffers_bytes;
	bool audit_enabled, audit_required;
	char *audit_path; /* "": audit.log in the state directory */
	uint64_t audit_max_bytes, audit_keep;

	/* execution limits: default and maximum */
	uint64_t timeout_us, timeout_max_us;
	uint64_t background_us, background_max_us; /* 0: as long as the session */
	uint64_t memory_bytes, memory_max_bytes;
	uint64_t disk_bytes, disk_max_bytes;
	uint64_t cpu_millicores, cpu_max_millicores; /* maximum 0: all cores */
	uint64_t processes, processes_max;
	uint64_t output_bytes, output_max_bytes;
	bool given[CONFIG_SETTINGS_MAX]; /* by file, environment or flags; as settings_at */
};

/* Keys are those of the file. */
struct config_override {
	const char *key;
	const char *value;
};

/** config_isolation_name - "strict" or "best-effort", as in settings and receipts; a literal. */
const char *config_isolation_name(enum config_isolation isolation);
/** config_is_given - whether a file, variable or flag set the setting at @offset of @c. */
bool config_is_given(const struct config *c, size_t offset);
/** config_local_connections - http.max_connections_per_local_peer, or what stands for it. */
uint64_t config_local_connections(const struct config *c);
void config_free(struct config *c);
static inline void config_freep(struct config **c)
{
	config_free(*c);
}
/**
 * config_load - @path may be NULL (no file). Errors name file, line and key; unknown keys are
 * errors. Return: owned, or NULL with *err.
 */
struct config *config_load(const char *path, const struct config_override *overrides,
                           size_t overrides_count, struct error *err) attr_owned(config_free);
/** config_parse - like config_load for a file's content (NULL: no file); errors call it @name. */
struct config *config_parse(const char *data, size_t len, const char *name,
                            const struct config_override *overrides, size_t overrides_count,
                            struct error *err) attr_owned(config_free);
/** config_dump - print YAML that config_load accepts, with help texts. */
void config_dump(const struct config *c, FILE *out);
/** config_dump_json - the same values as one JSON object, with an object for each section. */
void config_dump_json(const struct config *c, FILE *out);
void config_help(FILE *out);
