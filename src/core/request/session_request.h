/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what a caller requests of a session. api/ decodes it, policy decides on it. */

#include "driver/box_spec.h"
#include "driver/driver.h"
#include <stdbool.h>
#include <stdint.h>

struct template;

enum session_mode {
	SESSION_EPHEMERAL,  /* a new box for each execution */
	SESSION_WORKSPACE,  /* one box: its files stay; each execution is a process of its own */
	SESSION_PERSISTENT, /* one box, one runner per language: variables stay, too */
	SESSION_MODE_COUNT
};

/* Pointers are owned; 0 or NULL: not requested. */
struct session_request {
	const char *request_id;    /* borrowed; NULL: none */
	const char *key_id;        /* borrowed; NULL: no key */
	const char *tenant;        /* borrowed; NULL: TENANT_DEFAULT */
	char *id;                  /* id_is_valid; NULL: sess_ and 16 of [a-z0-9] */
	char *language;            /* of executions; NULL: python */
	char *template_id;         /* NULL: TEMPLATE_DEFAULT */
	struct template *template; /* borrowed; set by session_create, unless it has packages */
	char **packages;           /* to be installed; NULL-terminated */
	char *lock;                /* text of a lock file, instead of packages */
	char *agent_id;            /* reuse this agent's idle persistent session */
	enum session_mode mode;
	bool mode_soft; /* a default: what the policy allows, if that is less */
	char **env;     /* NULL-terminated NAME=value */
	uint64_t idle_timeout_us;
	uint64_t lifetime_us;
	uint64_t memory_bytes, disk_bytes, cpu_millicores, max_processes;
	char *policy; /* additional to the tenant's; NULL: none */
	char *engine; /* name, or "auto"; NULL: the template's, or the default */
	enum box_grade min_isolation;
	bool network_asked;
	bool network_most; /* @network is the most: less, if the policy grants less */
	enum box_network network;
	char **network_allow;    /* hosts, instead of the policy's; NULL-terminated */
	char **secrets;          /* names; NULL-terminated */
	char **mcp;              /* SERVER or SERVER/TOOL that code may call, NULL-terminated */
	char *dependencies;      /* JSON, returned on request; NULL: none */
	char *package_index_url; /* returned on request; NULL: none */
	bool lacks_dependencies; /* create it even if some are missing */
};

void session_request_done(struct session_request *request);
const char *session_mode_name(enum session_mode mode);
/** session_mode_find - SESSION_EPHEMERAL if there is no such word. */
enum session_mode session_mode_find(const char *name);
/** session_mode_has_box - one that lives as long as the session. */
static inline bool session_mode_has_box(enum session_mode mode)
{
	return mode != SESSION_EPHEMERAL;
}
