/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/settings.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/size.h"
#include "base/str.h"
#include "base/suggest.h"
#include "base/utf8.h"

#define MSEC      USEC_PER_MS
#define SEC       USEC_PER_SEC
#define HOUR      (3600 * SEC)
#define AT(field) offsetof(struct config, field)
#define LIST_MAX  64
#define TEXT_MAX  4096

/* clang-format off */
static const struct setting table[] = {
	{"listen",      SETTING_ADDR, AT(listen),      "127.0.0.1:8000", 0, 0, "TCP address of the API; \"\" for none. An address other than loopback requires API keys; without keys only root and the user who started the daemon are served"},
	{"socket",      SETTING_PATH, AT(socket),      NULL, 0, 0, "Unix socket of the API; \"\" for none"},
	{"socket_group", SETTING_TEXT, AT(socket_group), "", 0, 0, "Group whose members may connect to the Unix socket, a name or a number; \"\" for the group of the daemon's user"},
	{"state_dir",   SETTING_PATH, AT(state_dir),   NULL, 0, 0, "State that must survive a restart"},
	{"runtime_dir", SETTING_PATH, AT(runtime_dir), NULL, 0, 0, "The engine's locks"},
	{"user",        SETTING_TEXT, AT(user),        "",   0, 0, "User the daemon runs as when started as root; \"\" for an id of its own"},
	{"engine_path", SETTING_PATH, AT(engine_path), NULL, 0, 0, "Program millibox-engine"},
	{"agent_path",  SETTING_PATH, AT(agent_path),  NULL, 0, 0, "Program millibox-agent"},
	{"zygote_path", SETTING_PATH, AT(zygote_path), NULL, 0, 0, "Library of zygotes; no zygotes if the file does not exist"},
	{"addon_path",  SETTING_PATH, AT(addon_path),  NULL, 0, 0, "Native part of runners (a Node.js addon); without the file there is no JavaScript"},
	{"runners_dir", SETTING_PATH, AT(runners_dir), NULL, 0, 0, "Folder of the language runners"},
	{"runners.dirs", SETTING_LIST, AT(runner_dirs), "", 0, 0, "More folders of language runners; absolute paths, at most 7. A name that another runner has is an error"},
	{"runners.check", SETTING_BOOL, AT(runners_check), "true", 0, 0, "When languages are listed, run a small program of each in a box, to list only those that work. false: those whose files are there"},
	{"builds.cache", SETTING_SIZE, AT(builds_cache_bytes), "128Mi", 0, 1 * TIB, "Memory for compiled programs, so that unchanged code is not compiled again; a tenant has at most half. 0: none is kept"},
	{"tls.cert",    SETTING_PATH, AT(tls_cert),    "",   0, 0, "Certificate chain of the TCP address (PEM); \"\" for no TLS"},
	{"tls.key",     SETTING_PATH, AT(tls_key),     "",   0, 0, "Private key of the certificate (PEM); no other user may be able to read it"},
	{"auth.trust_socket", SETTING_BOOL, AT(auth_trust_socket), "true", 0, 0, "On the Unix socket, root and the user who started the daemon need no key: they are tenant \"default\" and may do everything"},
	{"allowed_hosts",   SETTING_LIST, AT(allowed_hosts),   "", 0, 0, "Additional names accepted in Host headers"},
	{"allowed_origins", SETTING_LIST, AT(allowed_origins), "", 0, 0, "Web origins that may call the API"},
	{"log_level",   SETTING_LOG_LEVEL,  AT(log_level),  "info", 0, 0, "error, warn, info or debug"},
	{"log_format",  SETTING_LOG_FORMAT, AT(log_format), "text", 0, 0, "text or json"},
	{"log_requests", SETTING_LOG_LEVEL, AT(log_requests), "debug", 0, 0, "Level at which each finished request is logged; info shows them all"},
	{"isolation",   SETTING_ISOLATION, AT(isolation), "strict", 0, 0, "strict: refuse to start while a required layer of isolation is missing. best-effort: run with the layers that this host has; the log and each result name it"},
	{"min_isolation", SETTING_GRADE, AT(min_isolation), "namespace", 0, 0, "Least grade of isolation of every box: namespace, gvisor (a kernel in user space) or vm. Nothing runs if no engine has it"},
	{"engine",      SETTING_TEXT, AT(engine),      "native", 0, 0, "Engine that makes boxes if a request, its template and its policy leave it open"},
	{"engines",     SETTING_LIST, AT(engines),     "",   0, 0, "Engines besides the default: NAME, a runtime (native, bwrap, runc, crun, gvisor, docker), or NAME=RUNTIME, and words like binary=/usr/local/bin/runsc after a space. In the file also a mapping of names to runtime, binary and words"},
	{"uid_base",    SETTING_UINT, AT(uid_base),    "1879048192", 65536, UINT32_MAX - 64ULL * 65536, "First host user id for boxes, when started as root"},

	{"http.max_connections",          SETTING_UINT, AT(max_connections),          "2048", 1, 65536, "Concurrent connections over TCP, and as many on the Unix socket. When they are used up, a new one replaces one that is not authenticated or idle"},
	{"http.max_connections_per_peer", SETTING_UINT, AT(max_connections_per_peer), "128",  1, 65536, "Connections of one tenant from one IPv4 address or IPv6 network (/64), and those from there that are not authenticated"},
	{"http.max_connections_per_local_peer", SETTING_UINT, AT(max_connections_per_local_peer), "0", 0, 65536, "The same for one user of the Unix socket or one loopback address; 0 for a quarter of http.max_connections, but no less than http.max_connections_per_peer"},
	{"http.max_body",   SETTING_SIZE, AT(max_body_bytes),   "8Mi",  1 * KIB, 64 * MIB, "Body of a request"},
	{"http.max_header", SETTING_SIZE, AT(max_header_bytes), "16Ki", 1 * KIB, 1 * MIB,  "Headers of a request"},
	{"http.max_code",   SETTING_SIZE, AT(max_code_bytes),   "1Mi",  1,      64 * MIB, "Code of an execution"},
	{"http.max_answers", SETTING_SIZE, AT(max_answers_bytes), "256Mi", 1 * MIB, 1 * TIB, "All responses waiting for their readers; beyond that the slowest connections are closed"},
	{"http.max_upload", SETTING_SIZE, AT(max_upload_bytes), "100Mi", 1 * KIB, 1 * TIB, "File in a multipart/form-data upload; the disk of the box bounds the body of a PUT"},
	{"http.request_timeout", SETTING_DURATION, AT(request_timeout_us), "30s", 100 * MSEC, HOUR, "From the first byte of a request to its last"},
	{"http.idle_timeout",    SETTING_DURATION, AT(idle_timeout_us),    "60s", 100 * MSEC, HOUR, "Idle connection without a request"},

	{"admission.max_running", SETTING_UINT, AT(max_running), "0",  0, 4096,  "Concurrent executions; 0 for as many as memory and the number of boxes allow"},
	{"admission.max_starting", SETTING_UINT, AT(max_starting), "0",  0, 1024,  "Boxes being built for executions and sessions; 0 for twice the cores"},
	{"admission.memory_reserve", SETTING_SIZE, AT(memory_reserve_bytes), "0", 0, 1 * TIB, "Memory that new boxes leave free; 0 for a sixteenth of the memory. Half of it is for tenants with fewer boxes than an equal share"},
	{"admission.memory_low", SETTING_SIZE, AT(memory_low_bytes), "0", 0, 1 * TIB, "Available memory below which the largest box of the tenant furthest over its equal share is ended; 0 for half of admission.memory_reserve"},
	{"admission.max_queued",  SETTING_UINT, AT(max_queued),  "1024", 0, 65536, "Executions waiting in the queue"},
	{"admission.drain_timeout", SETTING_DURATION, AT(drain_timeout_us), "10s", 0, HOUR, "How long running executions may take to end when the daemon stops"},

	{"zygotes.enabled",    SETTING_BOOL, AT(zygotes_enabled), "true", 0, 0, "Fork programs from warm interpreters instead of executing an interpreter for each"},
	{"zygotes.modules",    SETTING_LIST, AT(zygotes_modules), "numpy,pandas,scipy,sympy,matplotlib,matplotlib.pyplot,PIL,lxml,bs4,yaml,requests", 0, 0, "Modules that zygotes may import for templates that preload them; they run with power over boxes. Other modules are imported inside the box"},
	{"zygotes.max_children", SETTING_UINT, AT(zygotes_children), "5000", 1, 1000000000, "Programs forked by a zygote before it is replaced; they share one hash seed and one memory layout"},
	{"zygotes.max_memory", SETTING_SIZE, AT(zygotes_memory), "512Mi", 1 * MIB, 64 * GIB, "A zygote that grows to this size is replaced"},
	{"zygotes.max_age",    SETTING_DURATION, AT(zygotes_age_us), "1h", SEC, 24 * HOUR, "A zygote of this age is replaced"},

	{"pools.enabled",    SETTING_BOOL, AT(pools_enabled), "true",  0, 0,    "Create boxes ahead of demand"},
	{"pools.floor",      SETTING_UINT, AT(pools_floor),   "2",     0, 64,   "Boxes kept ready for each language with the default limits"},
	{"pools.session_floor", SETTING_UINT, AT(pools_session_floor), "1", 0, 64, "Boxes with a runner kept ready for persistent sessions with the default template, language and limits; 0: sessions do not use pools"},
	{"pools.max",        SETTING_UINT, AT(pools_max),     "32",    1, 1024, "Boxes kept ready, of all kinds"},
	{"pools.max_memory", SETTING_SIZE, AT(pools_memory_bytes), "512Mi", 1 * MIB, 1 * TIB, "Memory used by all of them; no more are created beyond that"},
	{"pools.max_age",    SETTING_DURATION, AT(pools_age_us),  "10m", SEC, 24 * HOUR, "A box that has waited this long is replaced"},
	{"pools.idle",       SETTING_DURATION, AT(pools_idle_us), "60s", SEC, 24 * HOUR, "A kind not requested for this long shrinks to the minimum"},

	{"sessions.max",          SETTING_UINT,     AT(sessions_max),        "1024", 1, 65536, "Concurrent sessions, and as many ended ones kept in memory"},
	{"sessions.idle_timeout", SETTING_DURATION, AT(session_idle_us),     "15m",  SEC, 24 * HOUR, "A session idle for this long ends; a request may ask for at most the lifetime"},
	{"sessions.lifetime",     SETTING_DURATION, AT(session_lifetime_us), "4h",   SEC, 30 * 24 * HOUR, "A session this old ends; also the maximum a request may ask for"},
	{"sessions.queue",        SETTING_UINT,     AT(session_queue),       "64",   1, 4096,  "Executions waiting in the queue of one session"},

	{"sessions.survive",      SETTING_DURATION, AT(session_survive_us),  "60s",  0, HOUR, "How long persistent sessions wait for a new daemon if theirs dies; 0: they end with it"},
	{"sessions.keep_on_stop", SETTING_BOOL,     AT(sessions_keep_on_stop), "false", 0, 0, "When stopped, the daemon leaves its persistent sessions to the next one, as if it had died"},

	{"executions.background_output", SETTING_SIZE, AT(background_output_bytes), "256Mi", 1 * MIB, 64 * GIB, "Output of background runs and terminals that is kept while they run; one tenant gets half of it. Beyond that, terminals keep the latest 16 KiB or more, and other runs what they have"},
	{"executions.keep",       SETTING_UINT, AT(executions_keep),       "10000", 1, 1000000, "Ended executions kept in memory; others are read from the store"},
	{"executions.keep_bytes", SETTING_SIZE, AT(executions_keep_bytes), "256Mi", 1 * MIB, 64 * GIB, "Code and output of all of those"},

	{"store.volatile", SETTING_BOOL, AT(store_volatile), "false", 0, 0, "Keep nothing on disk: sessions, executions, keys and templates are lost when the daemon ends"},
	{"retention.sessions",   SETTING_DURATION, AT(retention_sessions_us),   "168h", SEC, 3650 * 24 * HOUR, "How long an ended session can be read, across restarts"},
	{"retention.executions", SETTING_DURATION, AT(retention_executions_us), "720h", SEC, 3650 * 24 * HOUR, "How long an ended execution can be read, across restarts"},
	{"retention.max_count",  SETTING_UINT, AT(retention_count), "1000000", 1, 1000000000, "Ended executions stored; beyond that the tenant with the most loses its oldest"},
	{"retention.max_bytes",  SETTING_SIZE, AT(retention_bytes), "4Gi", 1 * MIB, 64 * TIB, "Code and output of all of those"},

	{"policy.dir",        SETTING_PATH, AT(policy_dir),        NULL,      0, 0, "Folder of policies, reloaded on SIGHUP; \"\" for the built-in policies"},
	{"policy.default",    SETTING_TEXT, AT(policy_default),    "default", 0, 0, "Policy of tenants without their own"},
	{"policy.selectable", SETTING_LIST, AT(policy_selectable), "strict",  0, 0, "Policies that a request may name; they apply in addition to the tenant's"},

	{"templates.dirs", SETTING_LIST, AT(template_dirs), "",     0, 0,     "Directories whose subdirectories may be roots of templates; absolute paths, at most 7"},
	{"templates.max",  SETTING_UINT, AT(templates_max), "1000", 1, 65536, "Templates of all tenants, without the built-in ones"},
	{"tools.profile",      SETTING_PROFILE, AT(tools_profile),   "default", 0, 0, "Tools that MCP lists. default: few tools and short results, for a model. full: all tools, with every argument and every member of a result. All can be called either way"},
	{"mcp.enabled",        SETTING_BOOL, AT(mcp_enabled),        "true", 0, 0, "Serve the Model Context Protocol at /mcp and below"},
	{"mcp.enabled_tools",  SETTING_LIST, AT(mcp_enabled_tools),  "",     0, 0, "Tools that agents may call; empty: all"},
	{"mcp.disabled_tools", SETTING_LIST, AT(mcp_disabled_tools), "",     0, 0, "Tools that agents may not call, even if enabled"},
	{"mcp.max_sessions",        SETTING_UINT, AT(mcp_sessions),        "1024", 1, 65536, "Concurrent MCP sessions; an idle one of the same tenant makes room for a new one"},
	{"mcp.max_tenant_sessions", SETTING_UINT, AT(mcp_tenant_sessions), "512",  1, 65536, "The same for one tenant"},
	{"mcp.session_timeout",     SETTING_DURATION, AT(mcp_session_us),  "1h",   SEC, 30 * 24 * HOUR, "An MCP session idle for this long ends; its sandboxes do not"},
	{"mcp.max_buffers",         SETTING_SIZE, AT(mcp_buffers_bytes),   "128Mi", 64 * KIB, 64 * GIB, "Messages kept for agents that reconnect, divided among tenants; one session has at most a sixteenth"},
	{"mcp.max_text",       SETTING_SIZE, AT(mcp_text_bytes),     "16Ki", 256, 1 * MIB, "Text of a tool's result; longer output is cut to head and tail, the rest is a resource"},
	{"audit.enabled",  SETTING_BOOL, AT(audit_enabled),  "true",  0, 0, "Keep an audit log"},
	{"audit.path",     SETTING_PATH, AT(audit_path),     "",      0, 0, "Path of the audit log; \"\" for audit.log in the state directory"},
	{"audit.required", SETTING_BOOL, AT(audit_required), "false", 0, 0, "Refuse work while the audit log cannot be written; refuse to start if it is damaged"},
	{"audit.max_size", SETTING_SIZE, AT(audit_max_bytes), "64Mi", 64 * KIB, 64 * GIB, "Size at which the audit log is rotated"},
	{"audit.keep",     SETTING_UINT, AT(audit_keep),     "16",    0, 65536, "Rotated files kept"},

	{"limits.timeout",        SETTING_DURATION, AT(timeout_us),     "30s",   1 * MSEC, 24 * HOUR, "Default wall time of an execution"},
	{"limits.timeout_max",    SETTING_DURATION, AT(timeout_max_us), "3600s", 1 * MSEC, 24 * HOUR, "Maximum a request may ask for"},
	{"limits.background_time",     SETTING_DURATION, AT(background_us),     "0", 0, 30 * 24 * HOUR, "Default wall time of a background run or terminal; 0: the rest of the session's lifetime"},
	{"limits.background_time_max", SETTING_DURATION, AT(background_max_us), "0", 0, 30 * 24 * HOUR, "Maximum a request may ask for; 0: the rest of the session's lifetime"},
	{"limits.memory",         SETTING_SIZE, AT(memory_bytes),       "512Mi", 16 * MIB,  1 * TIB,    "Memory of a box, including all its processes and files"},
	{"limits.memory_max",     SETTING_SIZE, AT(memory_max_bytes),   "8Gi",   16 * MIB,  1 * TIB,    "Maximum a request may ask for"},
	{"limits.disk",           SETTING_SIZE, AT(disk_bytes),         "256Mi", 1 * MIB,   1 * TIB,    "Workspace of a box; at most half of its memory, which holds the workspace. A request that names its memory only gets half of that, if it is more"},
	{"limits.disk_max",       SETTING_SIZE, AT(disk_max_bytes),     "4Gi",   1 * MIB,   1 * TIB,    "Maximum a request may ask for"},
	{"limits.cpu",            SETTING_CPU,  AT(cpu_millicores),     "1",     10,       1024000,   "Cores, or fractions of one"},
	{"limits.cpu_max",        SETTING_CPU,  AT(cpu_max_millicores), "0",     0,        1024000,   "Maximum a request may ask for; 0 for all cores"},
	{"limits.processes",      SETTING_UINT, AT(processes),          "128",   16,       32768,     "Processes and threads"},
	{"limits.processes_max",  SETTING_UINT, AT(processes_max),      "1024",  16,       32768,     "Maximum a request may ask for"},
	{"limits.io",             SETTING_SIZE, AT(io_bytes),           "512Mi", 0,        1 * TIB,    "Bytes per second that all boxes of a tenant together may read from a disk, and write to it; files that are cached do not count. 0 for unlimited"},
	{"limits.io_ops",         SETTING_UINT, AT(io_ops),             "10000", 0,        100000000, "The same in operations per second; 0 for unlimited"},
	{"limits.output",         SETTING_SIZE, AT(output_bytes),       "1Mi",   1,        256 * MIB,  "Bytes kept of stdout, and of stderr"},
	{"limits.output_max",     SETTING_SIZE, AT(output_max_bytes),   "4Mi",   1,        256 * MIB,  "Maximum a request may ask for"},

	{"egress.resolver", SETTING_TEXT, AT(egress_resolver), "", 0, 0, "Name servers for boxes with network allowlist, ADDRESS[:PORT] with commas between; \"\" for the host's"},
	{"egress.ca_file", SETTING_TEXT, AT(egress_ca_file), "/etc/ssl/certs/ca-certificates.crt", 0, 0, "Authorities that certificates of hosts with secrets must come from; boxes that use secrets get them too"},
	{"egress.memory", SETTING_SIZE, AT(egress_memory_bytes), "1Gi", 64 * MIB, 64 * GIB, "Memory of the proxy, which connections of all tenants share; when most of it is used, the tenant that holds most waits"},
	{"egress.max_connections", SETTING_UINT, AT(egress_connections), "64", 1, 65536, "Concurrent connections of a box to its network; more wait"},
	{"egress.max_connections_per_tenant", SETTING_UINT, AT(egress_connections_tenant), "512", 1, 65536, "The same for all boxes of a tenant"},
	{"egress.max_new_connections_per_tenant", SETTING_UINT, AT(egress_opened_tenant), "200", 1, 100000, "New connections per second of all boxes of a tenant, ten times as many at once; more wait. Each keeps a port of this host busy for a minute"},
	{"egress.idle_timeout", SETTING_DURATION, AT(egress_idle_us), "5m", SEC, 24 * HOUR, "A connection without a byte for this long ends"},
	{"egress.max_bytes", SETTING_SIZE, AT(egress_bytes), "0", 0, 1024 * TIB, "Bytes that a box may send and receive; 0 for no limit"},
	{"egress.max_rate", SETTING_SIZE, AT(egress_rate), "0", 0, 1 * TIB, "Bytes per second of a box; 0 for no limit"},
	{"egress.max_rate_per_tenant", SETTING_SIZE, AT(egress_rate_tenant), "0", 0, 1 * TIB, "The same for all boxes of a tenant"},
	{"egress.pypi", SETTING_LIST, AT(egress_pypi), "pypi.org,files.pythonhosted.org", 0, 0, "Rules that \"pypi\" stands for in a policy's network.allow; name a mirror here"},
	{"egress.npm", SETTING_LIST, AT(egress_npm), "registry.npmjs.org", 0, 0, "The same for \"npm\""},
	{"egress.crates", SETTING_LIST, AT(egress_crates), "crates.io,index.crates.io,static.crates.io", 0, 0, "The same for \"crates\""},
	{"egress.golang", SETTING_LIST, AT(egress_golang), "proxy.golang.org,sum.golang.org", 0, 0, "The same for \"golang\""},
	{"egress.maven", SETTING_LIST, AT(egress_maven), "repo.maven.apache.org,repo1.maven.org", 0, 0, "The same for \"maven\""},
	{"egress.nuget", SETTING_LIST, AT(egress_nuget), "api.nuget.org", 0, 0, "The same for \"nuget\""},
	{"egress.debian", SETTING_LIST, AT(egress_debian), "deb.debian.org,security.debian.org", 0, 0, "The same for \"debian\""},
	{"egress.github", SETTING_LIST, AT(egress_github), "github.com,api.github.com,codeload.github.com,raw.githubusercontent.com,objects.githubusercontent.com", 0, 0, "The same for \"github\""},
	{"bridge.enabled", SETTING_BOOL, AT(bridge_enabled), "false", 0, 0, "Boxes can have network bridge: an interface of their own, with the host's address outside. Needs root, forwarding (net.ipv4.ip_forward) and nft(8)"},
	{"bridge.subnet", SETTING_TEXT, AT(bridge_subnet), "100.96.0.0/16", 0, 0, "Addresses of boxes with network bridge, a /16 to a /24 that the host does not use"},
	{"bridge.allow", SETTING_LIST, AT(bridge_allow), "", 0, 0, "Ranges of private addresses that boxes with network bridge may reach besides public ones"},
	{"bridge.resolvers", SETTING_LIST, AT(bridge_resolvers), "", 0, 0, "Name servers of boxes with network bridge, IPv4 addresses; none: no names, only addresses"},
	{"host_network.enabled", SETTING_BOOL, AT(host_network_enabled), "false", 0, 0, "Policies can give network host: the box shares the network of the host, its loopback included, so that one isolation layer is missing. A second engine makes these boxes. Needs root or subordinate ids, and Landlock of Linux 6.12"},
	{"host_network.resolvers", SETTING_LIST, AT(host_network_resolvers), "", 0, 0, "Name servers of boxes with network host, addresses; none: no names, only addresses"},
	{"gateway.call_timeout", SETTING_DURATION, AT(gateway_timeout_us), "30s", 100 * MSEC, HOUR, "Time of one call of a tool of an outside MCP server, if the server has no other (gateway.servers, docs/gateway.md)"},
	{"gateway.memory", SETTING_SIZE, AT(gateway_memory_bytes), "2Gi", 256 * MIB, 64 * GIB, "Memory of the gateway; a quarter of it is for requests and results. When most of that is used, the tenant that holds most waits"},
	{"gateway.max_calls", SETTING_UINT, AT(gateway_calls), "16", 1, 4096, "Concurrent calls of a box; more wait"},
	{"gateway.max_calls_per_tenant", SETTING_UINT, AT(gateway_calls_tenant), "128", 1, 65536, "The same for all boxes of a tenant together"},
	{"gateway.max_calls_per_server", SETTING_UINT, AT(gateway_calls_server), "64", 1, 1024, "Concurrent calls of one server, if it has no other number; more wait"},
	{"gateway.max_bytes", SETTING_SIZE, AT(gateway_bytes), "32Mi", 64 * KIB, 1 * GIB, "Requests and results of a box that the gateway holds at a time; what exceeds it is refused"},
	{"gateway.max_bytes_per_tenant", SETTING_SIZE, AT(gateway_bytes_tenant), "128Mi", 64 * KIB, 1 * GIB, "The same for all boxes of a tenant together"},

	{"secrets.key_file", SETTING_TEXT, AT(secrets_key_file), "", 0, 0, "File with the key that encrypts secrets; \"\" for the credential secrets.key of the service, or secrets.key in state_dir, which is created"},

	{"packages.managers",  SETTING_LIST, AT(packages_managers), "pip,npm,cargo,go,maven,nuget,apt", 0, 0, "Package managers whose packages are installed on request; \"\" for none"},
	{"packages.pip_url",   SETTING_TEXT, AT(packages_pip_url), "", 0, 0, "Registry of pip; \"\" for that of the host's own client, else the public one. Installations reach its host, and those of egress.pypi if it is the public one or egress.pypi is set"},
	{"packages.npm_url",   SETTING_TEXT, AT(packages_npm_url), "", 0, 0, "The same for npm"},
	{"packages.cargo_url", SETTING_TEXT, AT(packages_cargo_url), "", 0, 0, "The same for cargo: a sparse index"},
	{"packages.go_url",    SETTING_TEXT, AT(packages_go_url), "", 0, 0, "The same for go: a module proxy. Sums are checked with sum.golang.org if it is the public one"},
	{"packages.maven_url", SETTING_TEXT, AT(packages_maven_url), "", 0, 0, "The same for maven: a repository; \"\" for the public one"},
	{"packages.nuget_url", SETTING_TEXT, AT(packages_nuget_url), "", 0, 0, "The same for nuget: index.json of a version 3 feed; \"\" for the public one"},
	{"packages.apt_url",   SETTING_TEXT, AT(packages_apt_url), "", 0, 0, "The same for apt: a mirror for the release of an image; \"\" for the sources that the image has, whose hosts must be in egress.debian"},
	{"packages.timeout",   SETTING_DURATION, AT(packages_timeout_us), "10m", SEC, 24 * HOUR, "Time of one installation"},
	{"packages.memory",    SETTING_SIZE, AT(packages_memory_bytes), "4Gi", 64 * MIB, 1 * TIB, "Memory of the box of an installation, which holds its files too"},
	{"packages.disk",      SETTING_SIZE, AT(packages_disk_bytes), "3Gi", 16 * MIB, 1 * TIB, "Files of that box"},
	{"packages.max_size",  SETTING_SIZE, AT(packages_layer_bytes), "2Gi", 1 * MIB, 1 * TIB, "Packages of one installation"},
	{"packages.max_per_tenant", SETTING_SIZE, AT(packages_tenant_bytes), "8Gi", 1 * MIB, 64 * TIB, "Layers of packages of a tenant; beyond that the least recently used are removed"},
	{"packages.max_total", SETTING_SIZE, AT(packages_total_bytes), "32Gi", 1 * MIB, 64 * TIB, "The same for all tenants"},
	{"packages.max_installs", SETTING_UINT, AT(packages_installs), "4", 1, 64, "Concurrent installations; more wait. One tenant has at most one less"},

	{"imports.max",            SETTING_UINT, AT(imports_max),          "4",      1, 64,        "Concurrent image imports; more wait for their turn"},
	{"imports.max_per_tenant", SETTING_UINT, AT(imports_max_tenant),   "2",      1, 64,        "The same for one tenant"},
	{"imports.max_queued",     SETTING_UINT, AT(imports_queued),       "16",     0, 1024,      "Imports that wait; more are rejected, except those of tenants below their equal share"},
	{"imports.archive",  SETTING_SIZE, AT(import_archive_bytes), "8Gi",    1 * MIB, 64 * TIB,   "Archive of an image"},
	{"imports.root",     SETTING_SIZE, AT(import_root_bytes),    "16Gi",   1 * MIB, 64 * TIB,   "All files of an image, over all layers"},
	{"imports.file",     SETTING_SIZE, AT(import_file_bytes),    "4Gi",    1 * KIB, 64 * TIB,   "One file of an image"},
	{"imports.entries",  SETTING_UINT, AT(import_entries),       "500000", 1, 100000000, "Files, directories and links in the layers of an image"},
	{"imports.layers",   SETTING_UINT, AT(import_layers),        "127",    1, 512,       "Layers of an image"},
	{"imports.memory",   SETTING_SIZE, AT(import_memory_bytes),  "1Gi",    64 * MIB, 64 * GIB, "Memory of the process that unpacks an image"},
	{"imports.cpu_time", SETTING_DURATION, AT(import_cpu_us),    "15m",    SEC, 24 * HOUR,  "Processor time of an import"},

	{"quota.sessions",   SETTING_UINT, AT(quota_sessions),     "64",   0, 65536,   "Concurrent sessions of one tenant; 0 for unlimited. Tenant \"default\" has no quotas unless they are set for it"},
	{"quota.executions", SETTING_UINT, AT(quota_executions),   "256",   0, 65536,   "Concurrent executions of one tenant; more wait. 0 for unlimited"},
	{"quota.queued",     SETTING_UINT, AT(quota_queued),       "1024",  0, 1000000, "Waiting executions of one tenant; more are rejected. 0 for unlimited"},
	{"quota.memory",     SETTING_SIZE, AT(quota_memory_bytes), "256Gi", 0, 1024 * TIB, "Sum of the memory limits of one tenant's boxes, which they rarely use; 0 for unlimited"},
	{"quota.requests_per_second", SETTING_UINT, AT(quota_requests), "200", 0, 1000000, "Requests of one tenant per second, on average; 0 for unlimited"},
	{"quota.burst",      SETTING_UINT, AT(quota_burst),        "0",    0, 1000000, "Burst of requests of one tenant; 0 for twice quota.requests_per_second. A tenant with a rate of its own has twice that rate, or a burst of its own"},
	{"quota.templates",  SETTING_UINT, AT(quota_templates),    "64",   0, 65536,   "Templates of one tenant, without the built-in ones; 0 for unlimited"},
	{"quota.secrets",    SETTING_UINT, AT(quota_secrets),      "64",   0, 65536,   "Secrets of one tenant; 0 for unlimited"},
	{"quota.images",     SETTING_SIZE, AT(quota_images_bytes), "32Gi", 0, 1024 * TIB, "Disk space of one tenant's imported images; 0 for unlimited"},
};
/* clang-format on */
static_assert(ARRAY_SIZE(table) <= CONFIG_SETTINGS_MAX, "a place in config.given for each");

size_t settings_count(void)
{
	return ARRAY_SIZE(table);
}

const struct setting *settings_at(size_t index)
{
	return index < ARRAY_SIZE(table) ? &table[index] : NULL;
}

const struct setting *settings_find(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (str_equal(table[i].key, key))
			return &table[i];
	return NULL;
}

bool settings_has_group(const char *group)
{
	size_t len = strlen(group);

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strncmp(table[i].key, group, len) == 0 && table[i].key[len] == '.')
			return true;
	return false;
}

static const char *last_part(const char *key)
{
	const char *dot = strrchr(key, '.');

	return dot ? dot + 1 : key;
}

const char *settings_suggest(const char *key)
{
	struct suggest s = {.word = key};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		suggest_offer(&s, table[i].key);
	/* The right name in the wrong group is as likely as a typing error. */
	for (size_t i = 0; i < ARRAY_SIZE(table) && !s.best; i++)
		if (str_equal(last_part(key), last_part(table[i].key)))
			s.best = table[i].key;
	return s.best;
}

void setting_env(const struct setting *s, char ret_name[SETTING_ENV_LEN])
{
	size_t n = strlen(SETTING_ENV_PREFIX);

	memcpy(ret_name, SETTING_ENV_PREFIX, n);
	for (const char *c = s->key; *c && n < SETTING_ENV_LEN - 1; c++)
		ret_name[n++] = (char)(*c == '.' ? '_' : toupper((unsigned char)*c));
	ret_name[n] = '\0';
}

const struct setting *settings_find_env(const char *name)
{
	char env[SETTING_ENV_LEN];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		setting_env(&table[i], env);
		if (str_equal(env, name))
			return &table[i];
	}
	return NULL;
}

/* YAML treats these as a line break or as nothing. */
static const char *const invisible[] = {
	"\xe2\x80\xa8", /* U+2028 */
	"\xe2\x80\xa9", /* U+2029 */
	"\xef\xbb\xbf", /* U+FEFF */
	"\xef\xbf\xbe", /* U+FFFE */
	"\xef\xbf\xbf", /* U+FFFF */
};

/* Can be dumped, read back and logged. */
static bool is_clean(const char *text)
{
	size_t len = strlen(text);

	if (len > TEXT_MAX || !utf8_is_valid(text, len))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(invisible); i++)
		if (strstr(text, invisible[i]))
			return false;
	/* U+0001 to U+001F, U+007F, and U+0080 to U+009F in two bytes. */
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0))
			return false;
	return true;
}

static int set_text(void *field, const char *text)
{
	char **place = field;

	free(*place);
	*place = xstrdup(text);
	return 0;
}

static int set_path(void *field, const char *text)
{
	return *text && *text != '/' ? -EINVAL : set_text(field, text);
}

static int set_addr(void *field, const char *text)
{
	char host[INET6_ADDRSTRLEN + 2];
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	uint64_t port = 0;
	bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
	struct in6_addr address;

	if (!*text)
		return set_text(field, text);
	if (len == 0 || len >= sizeof(host) || parse_u64(colon + 1, &port) < 0 || port > UINT16_MAX)
		return -EINVAL;
	memcpy(host, text + brackets, len - 2 * (size_t)brackets);
	host[len - 2 * (size_t)brackets] = '\0';
	/* Numeric only: no name lookup decides where the daemon listens. */
	if (inet_pton(brackets ? AF_INET6 : AF_INET, host, &address) != 1)
		return -EINVAL;
	return set_text(field, text);
}

static int add_item(char **list, size_t *count, const char *item, size_t len)
{
	while (len > 0 && *item == ' ') {
		item++;
		len--;
	}
	while (len > 0 && item[len - 1] == ' ')
		len--;
	if (len == 0 || *count == LIST_MAX)
		return -EINVAL;
	list[(*count)++] = xstrndup(item, len);
	return 0;
}

static int set_list(void *field, const char *text)
{
	cleanup_str_list char **list = xcalloc(LIST_MAX + 1, sizeof(*list));
	char ***place = field;
	size_t count = 0;

	for (const char *item = text; *text;) {
		size_t len = strcspn(item, ",");

		if (add_item(list, &count, item, len) < 0)
			return -EINVAL;
		if (!item[len])
			break;
		item += len + 1;
	}
	str_list_free(*place);
	*place = TAKE_PTR(list);
	return 0;
}

static int set_bool(void *field, const char *text)
{
	return parse_bool(text, field);
}

static int set_log_level(void *field, const char *text)
{
	int r = log_level_parse(text);

	if (r >= 0)
		*(enum log_level *)field = (enum log_level)r;
	return r < 0 ? r : 0;
}

static int set_log_format(void *field, const char *text)
{
	int r = log_format_parse(text);

	if (r >= 0)
		*(enum log_format *)field = (enum log_format)r;
	return r < 0 ? r : 0;
}

static const char *const isolation_names[] = {
	[CONFIG_ISOLATION_STRICT] = "strict",
	[CONFIG_ISOLATION_BEST_EFFORT] = "best-effort",
};
static_assert(ARRAY_SIZE(isolation_names) == CONFIG_ISOLATION_COUNT, "every mode has a name");

const char *config_isolation_name(enum config_isolation isolation)
{
	return isolation_names[isolation];
}

static int set_isolation(void *field, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(isolation_names); i++) {
		if (!str_equal(text, isolation_names[i]))
			continue;
		*(enum config_isolation *)field = (enum config_isolation)i;
		return 0;
	}
	return -EINVAL;
}

static int set_grade(void *field, const char *text)
{
	enum box_grade grade = box_grade_find(text);

	if (grade == BOX_GRADE_COUNT)
		return -EINVAL;
	*(enum box_grade *)field = grade;
	return 0;
}

static const char *const profile_names[] = {
	[CONFIG_PROFILE_DEFAULT] = "default",
	[CONFIG_PROFILE_FULL] = "full",
};
static_assert(ARRAY_SIZE(profile_names) == CONFIG_PROFILE_COUNT, "every profile has a name");

static int set_profile(void *field, const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(profile_names); i++) {
		if (!str_equal(text, profile_names[i]))
			continue;
		*(enum config_profile *)field = (enum config_profile)i;
		return 0;
	}
	return -EINVAL;
}

static void print_quoted(const char *text, FILE *out)
{
	(void)fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
	(void)fputc('"', out);
}

static void print_text(const void *field, FILE *out)
{
	print_quoted(*(char *const *)field, out);
}

static void print_list(const void *field, FILE *out)
{
	char *const *list = *(char *const *const *)field;

	(void)fputc('[', out);
	for (size_t i = 0; list[i]; i++) {
		(void)fputs(i ? ", " : "", out);
		print_quoted(list[i], out);
	}
	(void)fputc(']', out);
}

static void print_bool(const void *field, FILE *out)
{
	(void)fputs(*(const bool *)field ? "true" : "false", out);
}

static void format_uint(uint64_t value, char *ret_text, size_t size)
{
	(void)snprintf(ret_text, size, "%llu", (unsigned long long)value);
}

static void format_duration(uint64_t us, char *ret_text, size_t size)
{
	if (us % SEC == 0)
		(void)snprintf(ret_text, size, "%llus", (unsigned long long)(us / SEC));
	else if (us % MSEC == 0)
		(void)snprintf(ret_text, size, "%llums", (unsigned long long)(us / MSEC));
	else
		(void)snprintf(ret_text, size, "%llu.%06llu", (unsigned long long)(us / SEC),
		               (unsigned long long)(us % SEC));
}

static void print_log_level(const void *field, FILE *out)
{
	(void)fputs(log_level_name(*(const enum log_level *)field), out);
}

static void print_log_format(const void *field, FILE *out)
{
	static const char *const names[] = {"text", "json"};

	static_assert(ARRAY_SIZE(names) == LOG_FORMAT_COUNT, "every format has a name");
	(void)fputs(names[*(const enum log_format *)field], out);
}

static void print_isolation(const void *field, FILE *out)
{
	(void)fputs(config_isolation_name(*(const enum config_isolation *)field), out);
}

static void print_grade(const void *field, FILE *out)
{
	(void)fputs(box_grade_name(*(const enum box_grade *)field), out);
}

static void print_profile(const void *field, FILE *out)
{
	(void)fputs(profile_names[*(const enum config_profile *)field], out);
}

static void done_text(void *field)
{
	free(TAKE_PTR(*(char **)field));
}

static void done_list(void *field)
{
	str_list_free(TAKE_PTR(*(char ***)field));
}

/* Numbers in a range use @parse and @format; other types @set and @print. */
struct setting_ops {
	const char *what; /* "must be ..." */
	int (*set)(void *field, const char *text);
	void (*print)(const void *field, FILE *out);
	void (*done)(void *field); /* NULL: nothing is owned */
	int (*parse)(const char *text, uint64_t *ret_value);
	void (*format)(uint64_t value, char *ret_text, size_t size);
};

/* clang-format off */
static const struct setting_ops types[] = {
	[SETTING_TEXT]       = {"text without control characters", set_text, print_text, done_text, NULL, NULL},
	[SETTING_PATH]       = {"an absolute path, or \"\"", set_path, print_text, done_text, NULL, NULL},
	[SETTING_ADDR]       = {"a numeric address and a port, such as 127.0.0.1:8000 or [::1]:8000, or \"\"", set_addr, print_text, done_text, NULL, NULL},
	[SETTING_LIST]       = {"a list of at most 64 non-empty names", set_list, print_list, done_list, NULL, NULL},
	[SETTING_BOOL]       = {"true or false", set_bool, print_bool, NULL, NULL, NULL},
	[SETTING_UINT]       = {"a whole number", NULL, NULL, NULL, parse_u64, format_uint},
	[SETTING_SIZE]       = {"a size such as 512Mi", NULL, NULL, NULL, parse_size, format_size},
	[SETTING_DURATION]   = {"a time such as 30s or 500ms", NULL, NULL, NULL, parse_duration, format_duration},
	[SETTING_CPU]        = {"a number of cores such as 1, 0.5 or 500m", NULL, NULL, NULL, parse_cpu, format_cpu},
	[SETTING_LOG_LEVEL]  = {"error, warn, info or debug", set_log_level, print_log_level, NULL, NULL, NULL},
	[SETTING_LOG_FORMAT] = {"text or json", set_log_format, print_log_format, NULL, NULL, NULL},
	[SETTING_ISOLATION]  = {"strict or best-effort", set_isolation, print_isolation, NULL, NULL, NULL},
	[SETTING_GRADE]      = {"namespace, gvisor or vm", set_grade, print_grade, NULL, NULL, NULL},
	[SETTING_PROFILE]    = {"default or full", set_profile, print_profile, NULL, NULL, NULL},
};
/* clang-format on */
static_assert(ARRAY_SIZE(types) == SETTING_TYPE_COUNT, "every type has a row");

static void *field_of(const struct setting *s, struct config *c)
{
	return (char *)c + s->offset;
}

static int set_number(const struct setting *s, struct config *c, const char *text,
                      char ret_why[SETTING_WHY_LEN])
{
	const struct setting_ops *type = &types[s->type];
	char min[48], max[48];
	uint64_t value = 0;
	int r = type->parse(text, &value);

	if (r == -ERANGE || (r >= 0 && (value < s->min || value > s->max))) {
		type->format(s->min, min, sizeof(min));
		type->format(s->max, max, sizeof(max));
		(void)snprintf(ret_why, SETTING_WHY_LEN, "must be between %s and %s", min, max);
		return -EINVAL;
	}
	if (r < 0) {
		(void)snprintf(ret_why, SETTING_WHY_LEN, "must be %s", type->what);
		return -EINVAL;
	}
	memcpy(field_of(s, c), &value, sizeof(value));
	return 0;
}

int setting_set(const struct setting *s, struct config *c, const char *text,
                char ret_why[SETTING_WHY_LEN])
{
	if (types[s->type].parse)
		return set_number(s, c, text, ret_why);
	if (is_clean(text) && types[s->type].set(field_of(s, c), text) >= 0)
		return 0;
	(void)snprintf(ret_why, SETTING_WHY_LEN, "must be %s", types[s->type].what);
	return -EINVAL;
}

void setting_print(const struct setting *s, const struct config *c, FILE *out)
{
	const void *field = (const char *)c + s->offset;
	char text[48];

	if (types[s->type].print) {
		types[s->type].print(field, out);
		return;
	}
	types[s->type].format(*(const uint64_t *)field, text, sizeof(text));
	(void)fputs(text, out);
}

/* What YAML writes without quotes and JSON does not: a size, a time, a number of cores, a word. */
static bool is_bare(enum setting_type type)
{
	static const enum setting_type same[] = {SETTING_TEXT, SETTING_PATH, SETTING_ADDR,
	                                         SETTING_LIST, SETTING_BOOL, SETTING_UINT};

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (type == same[i])
			return false;
	return true;
}

void setting_print_json(const struct setting *s, const struct config *c, FILE *out)
{
	const char *quote = is_bare(s->type) ? "\"" : "";

	(void)fputs(quote, out);
	setting_print(s, c, out);
	(void)fputs(quote, out);
}

void setting_done(const struct setting *s, struct config *c)
{
	if (types[s->type].done)
		types[s->type].done(field_of(s, c));
}
