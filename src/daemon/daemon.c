/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/daemon.h"

#include "api/op/outputs.h"
#include "api/router.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/gateway/catalog.h"
#include "core/identity/identity.h"
#include "core/install/install.h"
#include "core/language/runners.h"
#include "core/metrics_core.h"
#include "core/observe/audit.h"
#include "core/observe/audit_row.h"
#include "core/observe/metrics_row.h"
#include "core/policy/policies.h"
#include "core/run/run.h"
#include "core/run/run_record.h"
#include "core/secret/secret.h"
#include "core/session/session.h"
#include "core/session/session_row.h"
#include "core/store/retention.h"
#include "core/store/store.h"
#include "core/template/imports.h"
#include "core/template/packages.h"
#include "core/template/templates.h"
#include "core/tenant/tenant.h"
#include "daemon/dialects.h"
#include "daemon/engine_setup.h"
#include "daemon/helper.h"
#include "daemon/home.h"
#include "daemon/install_parts.h"
#include "daemon/isolation.h"
#include "daemon/lockdown.h"
#include "daemon/loop_lag.h"
#include "daemon/notify.h"
#include "daemon/own_process.h"
#include "daemon/preflight.h"
#include "daemon/reload.h"
#include "daemon/secret_setup.h"
#include "daemon/socket_guard.h"
#include "daemon/tls_files.h"
#include "daemon/tls_guard.h"
#include "daemon/tls_reload.h"
#include "driver/driver.h"
#include "http/server.h"
#include "http/tcp_owner.h"
#include "io/loop.h"
#include "seal/seal.h"
#include "service/services.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Theory of operation. Order of the start:
 *
 *   state directory   a second daemon on it must fail before it disturbs the first
 *   engine            while we have privileges to give it; before it could inherit descriptors
 *   runners, sockets  with the rights of the user who started us
 *   guards            keep the rights to remove the socket and to read a new certificate
 *   ids               dropped before the first untrusted byte
 *   store             opened by its owner, while threads may start
 *   filter            after the last step that needs more; then the loop
 *
 * Stopping. The first signal ends sessions and accepts nothing new; one-shot runs may end within
 * the drain time. The second ends them at once, as does a dead engine, with another exit status.
 * When no run, box or connection is left, the loop stops; a client that does not read its response
 * delays that for at most ANSWER_TIMEOUT_US.
 */

#define ANSWER_TIMEOUT_US (2 * USEC_PER_SEC)
#define SOCKET_MODE       0660
#define MAX_BODIES_BYTES  (256u << 20)

static const int stop_signals[] = {SIGTERM, SIGINT};

struct daemon {
	const struct config *config;
	struct engine_setup engines;
	struct driver *driver; /* the default one of them */
	struct seal_key seal;  /* signs receipts */
	struct packages *packages;
	struct runners *runners;
	struct policies *policies;
	struct store *store;
	struct retention *retention;
	struct session_saved *saved; /* until restored */
	struct templates *templates;
	struct imports *imports;
	struct install_parts packing;
	struct helpers helpers;
	struct catalog *catalog;
	struct services *services;
	char **bases; /* owned, NULL-terminated */
	struct loop *loop;
	struct metrics *metrics;
	struct metrics_row *metrics_row;
	struct audit *audit;
	struct audit_row *audit_row;
	struct metrics_core_parts core_parts;
	struct loop_lag lag;
	struct tenants *tenants;
	struct identity *identity;
	struct secret_setup secrets;
	uid_t started_by;
	struct run_service *runs;
	struct run_records *executions;
	struct session_service *sessions;
	struct outputs *outputs;
	struct router *router;
	struct http_server *http;
	struct timer *answer_timer;
	struct signal_watch *signals[ARRAY_SIZE(stop_signals)];
	struct signal_watch *hangup;
	struct reload reload;
	struct guard socket_guard, tls_guard;
	struct tls_reload tls_reload;
	char custody[HOME_NAME_LEN + 16]; /* engines outlive the daemon under this name */
	struct tls_files tls;             /* until the server has them */
	int state_lock, tcp_fd, unix_fd;
	int notify_fd; /* the service manager; -1: none */
	int diag_fd;   /* who connects over TCP; until the server has it */
	char tcp_name[64];
	enum daemon_exit exit;
	bool stopping, sessions_ended, execs_drained, quiet;
};

static void stop_if_done(struct daemon *d)
{
	if (d->sessions_ended && d->execs_drained && d->quiet)
		loop_stop(d->loop);
}

static void on_quiet(void *ctx)
{
	struct daemon *d = ctx;

	d->quiet = true;
	stop_if_done(d);
}

static void on_answer_timeout(void *ctx)
{
	struct daemon *d = ctx;

	loop_stop(d->loop);
}

/* Only responses remain. */
static void check_drained(struct daemon *d)
{
	if (d->sessions_ended && d->execs_drained)
		timer_start(d->answer_timer, ANSWER_TIMEOUT_US);
	stop_if_done(d);
}

static void on_sessions_ended(void *ctx)
{
	struct daemon *d = ctx;

	d->sessions_ended = true;
	check_drained(d);
}

static void on_execs_drained(void *ctx)
{
	struct daemon *d = ctx;

	d->execs_drained = true;
	check_drained(d);
}

static void stop_daemon(struct daemon *d, bool at_once)
{
	router_set_unready(d->router, "stopping");
	if (!d->stopping)
		notify_send(d->notify_fd, "STOPPING=1");
	/* Sessions first: their boxes would not end by themselves. */
	if (!d->stopping && d->config->sessions_keep_on_stop && d->driver->caps.can_keep) {
		driver_leave(d->driver);
		session_service_leave(d->sessions, on_sessions_ended, d);
	} else if (!d->stopping) {
		session_service_drain(d->sessions, on_sessions_ended, d);
	}
	installs_stop(d->packing.installs);
	run_service_drain(d->runs, at_once, on_execs_drained, d);
	http_server_quiesce(d->http, on_quiet, d);
	d->stopping = true;
}

static void on_signal(void *ctx, int signo)
{
	struct daemon *d = ctx;

	log_info("%s: stopping%s", strsignal(signo), d->stopping ? " at once" : "");
	stop_daemon(d, d->stopping);
}

static void on_hangup(void *ctx, int signo attr_unused)
{
	struct daemon *d = ctx;

	tls_reload_ask(&d->tls_reload);
}

/* Its files are open. */
static void on_reload(void *ctx)
{
	const struct daemon *d = ctx;
	size_t failed = reload_run(&d->reload); /* logged */

	run_service_prepare(d->runs);
	session_service_prepare(d->sessions);
	audit_write(d->audit, &(struct audit_event){.action = "config.reload",
	                                            .result = failed ? "failed" : "ok"});
}

static void on_engine_lost(void *ctx, const struct error *err)
{
	struct daemon *d = ctx;

	log_error("the engine died, stopping", err);
	d->exit = DAEMON_ENGINE_LOST;
	if (!d->loop) /* during the start: the next use of the driver fails */
		return;
	stop_daemon(d, true);
	router_set_unready(d->router, "engine");
}

static void on_services(void *ctx)
{
	const struct daemon *d = ctx;

	driver_serve(d->driver, d->services);
}

static int start_engine(struct daemon *d, struct error *err)
{
	char name[HOME_NAME_LEN + 1];

	if (home_name(d->state_lock, name, err) < 0)
		return -1;
	(void)snprintf(d->custody, sizeof(d->custody), "custody-%s", name);
	/* Boxes of an earlier daemon bring descriptors. */
	own_process_raise_descriptors();
	d->engines = (struct engine_setup){.config = d->config,
	                                   .bases = (const char *const *)d->bases,
	                                   .custody = d->custody,
	                                   .on_engine_lost = on_engine_lost,
	                                   .ctx = d,
	                                   .guard.link = -1};
	if (engine_setup_start(&d->engines, err) < 0) {
		d->driver = d->engines.main;
		log_warn("'millibox doctor' reports what this host lacks, and the remedy");
		return -1;
	}
	d->driver = d->engines.main;
	return isolation_check_least(&d->driver->caps, err);
}

static int check_isolation(struct daemon *d, struct error *err)
{
	return isolation_check(d->config, &d->driver->caps, err);
}

static int open_sockets(struct daemon *d, struct error *err)
{
	const struct config *c = d->config;
	gid_t group;

	if (notify_open(getenv("NOTIFY_SOCKET"), &d->notify_fd, err) < 0)
		return -1;
	if (c->listen[0]) {
		if (http_listen_tcp(c->listen, &d->tcp_fd, err) < 0)
			return preflight_listen_failed(c, err);
		if (http_listen_name(d->tcp_fd, d->tls.cert ? "https" : "http", d->tcp_name,
		                     sizeof(d->tcp_name)) < 0)
			return error_set(err, ERR_SYSTEM, 0, "read the name of the socket");
		d->diag_fd = tcp_owner_open();
		if (d->diag_fd < 0)
			log_warn("open a sock_diag socket: %s; without keys, TCP refuses all users",
			         strerror(-d->diag_fd));
	}
	if (!c->socket[0])
		return 0;
	if (preflight_socket_group(c, &group, err) < 0 ||
	    home_make_parent(c->socket, preflight_own_id(d->config, d->driver->caps.daemon_uid),
	                     c->socket_group[0], err) < 0 ||
	    http_listen_unix(c->socket, SOCKET_MODE, &d->unix_fd, err) < 0)
		return -1;
	return home_share_socket(c->socket, group, err);
}

static int give_up_root(struct daemon *d, struct error *err)
{
	const char *socket = d->config->socket;
	uid_t uid;
	gid_t gid;

	if (preflight_ids(d->config, d->driver->caps.daemon_uid, &uid, &gid, err) < 0)
		return -1;
	if (d->audit && audit_give(d->audit, uid, gid, err) < 0)
		return -1;
	if (home_give_state(d->config->state_dir, d->state_lock, uid, gid, err) < 0)
		return -1;
	if (socket[0]) {
		/* Without a group of its own, the configured user's may use the socket. */
		if (lchown(socket, uid, d->config->socket_group[0] ? (gid_t)-1 : gid) < 0)
			return error_set(err, ERR_SYSTEM, errno, "chown %s", socket);
		if (socket_guard_start(&d->socket_guard, socket, d->state_lock, err) < 0)
			return -1;
	}
	if (d->tls.cert && tls_guard_start(&d->tls_guard, d->config, err) < 0)
		return -1;
	return lockdown_drop_ids(uid, gid, err);
}

/* A tenant was deleted: remove its history. */
static void on_departure(void *ctx)
{
	struct daemon *d = ctx;

	retention_hurry(d->retention);
}

static void forget_run(void *ctx, const char *tenant, const char *id)
{
	struct daemon *d = ctx;

	run_records_expire(d->executions, tenant, id);
}

static void forget_session(void *ctx, const char *tenant, const char *id, uint64_t created_ms)
{
	struct daemon *d = ctx;

	session_expire(d->sessions, tenant, id, created_ms);
}

static void forget_tenant(void *ctx, const char *name)
{
	struct daemon *d = ctx;

	identity_departed(d->identity, name);
}

static void make_core(struct daemon *d)
{
	struct run_service_config runs = {.config = d->config,
	                                  .driver = d->driver,
	                                  .runners = d->runners,
	                                  .policies = d->policies,
	                                  .secrets = d->secrets.secrets,
	                                  .toolchains = templates_toolchains(d->templates),
	                                  .loop = d->loop,
	                                  .metrics = d->metrics,
	                                  .audit = d->audit,
	                                  .seal = &d->seal,
	                                  .tenants = d->tenants};
	struct session_service_config sessions = {.config = d->config,
	                                          .driver = d->driver,
	                                          .runners = d->runners,
	                                          .loop = d->loop,
	                                          .metrics = d->metrics,
	                                          .audit = d->audit,
	                                          .templates = d->templates,
	                                          .store = d->store};

	d->imports = imports_new(&(struct imports_config){.loop = d->loop,
	                                                  .templates = d->templates,
	                                                  .tenants = d->tenants,
	                                                  .config = d->config,
	                                                  .metrics = d->metrics,
	                                                  .roots = d->bases[0],
	                                                  .sock = TAKE_FD(d->helpers.import.sock)});
	sessions.runs = d->runs = run_service_new(&runs);
	install_parts_start(&d->packing, &(struct installs_config){d->config, d->driver, d->runs,
	                                                           d->runners, d->imports, NULL,
	                                                           d->loop, d->metrics, d->audit});
	identity_start(d->identity, d->loop, run_service_scheduler(d->runs));
	secrets_start(d->secrets.secrets, d->loop);
	sessions.executions = d->executions = run_records_new(d->loop, d->config->executions_keep,
	                                                      d->config->executions_keep_bytes);
	run_records_set_metrics(d->executions, d->metrics);
	run_records_set_store(d->executions, d->store);
	run_records_set_audit(d->executions, d->audit);
	d->sessions = session_service_new(&sessions);
	d->retention = retention_new(&(struct retention_config){
		.config = d->config,
		.store = d->store,
		.loop = d->loop,
		.forget_run = forget_run,
		.forget_session = forget_session,
		.forget_tenant = forget_tenant,
		.ctx = d,
	});
	identity_watch_departures(d->identity, on_departure, d);
	identity_watch_policies(d->identity, session_service_on_policies, d->sessions);
}

static void measure_http(void *ctx, struct metrics *m)
{
	const struct daemon *d = ctx;

	metrics_set(m, METRIC_CONNECTIONS, (double)http_server_connections(d->http));
	metrics_set_for(m, METRIC_USAGE, METRIC_LABELS("connections"), http_server_usage(d->http));
	metrics_count(m, METRIC_EVICTIONS, (double)http_server_take_evicted(d->http));
}

static void start_metrics(struct daemon *d)
{
	d->core_parts = (struct metrics_core_parts){d->config, d->runs, d->sessions, d->store};
	metrics_set_for(d->metrics, METRIC_ISOLATION_INFO,
	                METRIC_LABELS(config_isolation_name(d->config->isolation)), 1);
	metrics_set(d->metrics, METRIC_START_TIME, (double)clock_real_ms() / 1e3);
	metrics_add_source(d->metrics, metrics_process, NULL);
	if (d->audit)
		d->audit_row = audit_row_new(d->store, d->audit, d->loop);
	metrics_add_source(d->metrics, metrics_core, &d->core_parts);
	metrics_add_source(d->metrics, measure_http, d);
	metrics_add_source(d->metrics, imports_measure, d->imports);
	if (d->audit)
		metrics_add_source(d->metrics, audit_measure, d->audit);
	d->metrics_row = metrics_row_new(d->store, d->metrics, d->loop);
	loop_lag_start(&d->lag, d->loop, d->metrics);
}

static void start_services(struct daemon *d)
{
	d->services =
		services_new(&(struct services_config){.loop = d->loop,
	                                               .egress = TAKE_FD(d->helpers.egress.sock),
	                                               .gateway = TAKE_FD(d->helpers.gateway.sock),
	                                               .gateway_events = catalog_events(d->catalog),
	                                               .on_change = on_services,
	                                               .ctx = d});
	driver_serve(d->driver, d->services);
	secret_setup_attach(&d->secrets, d->config, d->services, d->sessions, d->loop);
}

static int start_http(struct daemon *d, struct error *err)
{
	const struct config *c = d->config;
	const struct http_tls tls = {d->tls.cert, d->tls.key};
	struct http_server_config http = {
		.loop = d->loop,
		.max_connections = c->max_connections,
		.max_connections_per_peer = c->max_connections_per_peer,
		.max_connections_per_local_peer = config_local_connections(c),
		.max_header_bytes = c->max_header_bytes,
		.max_bodies_bytes = MAX_BODIES_BYTES,
		.max_answers_bytes = c->max_answers_bytes,
		.request_timeout_us = c->request_timeout_us,
		.idle_timeout_us = c->idle_timeout_us,
	};

	d->catalog = catalog_new(c, d->metrics, d->audit);
	make_core(d);
	start_metrics(d);
	d->outputs = outputs_new();
	d->router = router_new(&(struct router_config){
		dialects, c, d->loop, d->runs, d->sessions, d->executions, d->outputs, d->metrics,
		d->audit, d->packages, d->templates, d->runners, d->store, d->identity, d->tenants,
		d->imports, d->secrets.secrets, d->catalog, d->packing.installs});
	http.handlers = router_handlers(d->router);
	d->http = http_server_new(&http);
	router_set_server(d->router, d->http);
	http_server_identify(d->http, TAKE_FD(d->diag_fd));
	d->answer_timer = timer_new(d->loop, on_answer_timeout, d);
	for (size_t i = 0; i < ARRAY_SIZE(stop_signals); i++)
		d->signals[i] = signal_watch_new(d->loop, stop_signals[i], on_signal, d);
	d->tls_reload = (struct tls_reload){.config = c,
	                                    .guard = &d->tls_guard,
	                                    .http = d->http,
	                                    .loop = d->loop,
	                                    .ready = on_reload,
	                                    .ctx = d};
	d->hangup = signal_watch_new(d->loop, SIGHUP, on_hangup, d);
	if (d->tcp_fd >= 0 &&
	    http_server_listen(d->http, TAKE_FD(d->tcp_fd), tls.cert ? &tls : NULL, err) < 0)
		return -1;
	tls_files_done(&d->tls);
	if (d->unix_fd >= 0 && http_server_listen(d->http, TAKE_FD(d->unix_fd), NULL, err) < 0)
		return -1;
	if (engine_setup_attach(&d->engines, d->loop, err) < 0)
		return -1;
	start_services(d);
	session_service_restore(d->sessions, d->saved);
	session_saved_free(TAKE_PTR(d->saved));
	/* Now it is known which roots have boxes. */
	imports_sweep(d->imports);
	run_service_prepare(d->runs);
	session_service_prepare(d->sessions);
	return 0;
}

static void audit_daemon(const struct daemon *d, const char *action)
{
	audit_write(d->audit,
	            &(struct audit_event){.action = action,
	                                  .object = MILLIBOX_VERSION,
	                                  .result = d->exit == DAEMON_STOPPED ? "ok" : "failed"});
}

static void log_startup(const struct daemon *d)
{
	isolation_log(d->config, &d->driver->caps);
	log_info("listening on %s%s%s", d->tcp_name,
	         d->tcp_name[0] && d->config->socket[0] ? " and " : "", d->config->socket);
}

/* One step of the start, and the exit status if it fails. */
struct phase {
	int (*run)(struct daemon *d, struct error *err);
	enum daemon_exit exit;
};

static int check_config(struct daemon *d, struct error *err)
{
	if (preflight_settings(d->config, err) < 0)
		return -1;
	return preflight_programs(d->config, err);
}

/* Before any other process of ours exists. */
static int limit_core(struct daemon *d attr_unused, struct error *err)
{
	return lockdown_core_limit(err);
}

static int open_audit(struct daemon *d, struct error *err)
{
	const struct config *c = d->config;
	cleanup_free char *own = xasprintf("%s/audit.log", c->state_dir);
	const struct audit_config config = {
		.path = c->audit_path[0] ? c->audit_path : own,
		.max_bytes = c->audit_max_bytes,
		.keep = c->audit_keep,
		.required = c->audit_required,
	};

	return c->audit_enabled ? audit_open(&config, &d->audit, err) : 0;
}

static int open_state(struct daemon *d, struct error *err)
{
	if (home_open_state(d->config->state_dir, &d->state_lock, err) < 0)
		return -1;
	if (home_make_bases(d->config->state_dir, d->config->template_dirs, &d->bases, err) < 0)
		return -1;
	return open_audit(d, err);
}

static int load_tls(struct daemon *d, struct error *err)
{
	if (tls_files_load(d->config, &d->tls, err) < 0)
		return -1;
	if (d->tls.cert)
		reload_add(&d->reload, &(struct reload_part){"TLS certificate and key",
		                                             tls_reload_run, &d->tls_reload});
	return 0;
}

static int load_runners(struct daemon *d, struct error *err)
{
	if (helpers_find(&d->helpers, d->config, err) < 0)
		return -1;
	d->packages = packages_load_host();
	install_parts_find(&d->packing, d->config);
	d->runners = runners_load(d->config->runners_dir, d->config->runner_dirs, err);
	return d->runners ? 0 : -1;
}

static int reload_policies(void *ctx, struct error *err)
{
	const struct daemon *d = ctx;

	if (policies_reload(d->policies, err) < 0)
		return -1;
	router_policies_changed(d->router);
	session_service_policies_changed(d->sessions);
	return 0;
}

static int load_policies(struct daemon *d, struct error *err)
{
	d->policies = preflight_policies(d->config, NULL, err);
	reload_add(&d->reload, &(struct reload_part){"policies", reload_policies, d});
	return d->policies ? 0 : -1;
}

static int drop_ids(struct daemon *d, struct error *err)
{
	own_process_raise_descriptors();
	own_process_raise_priority();
	return geteuid() == 0 ? give_up_root(d, err) : 0;
}

static int open_store(struct daemon *d, struct error *err)
{
	if (store_open(d->config->store_volatile ? NULL : d->config->state_dir, &d->store, err) < 0)
		return d->started_by == 0 ? home_state_failed(d->config->state_dir, err) : -1;
	if (d->audit && audit_row_check(d->store, d->audit, err) < 0)
		return -1;
	d->metrics = metrics_new();
	if (metrics_row_load(d->store, d->metrics, err) < 0)
		return -1;
	return session_saved_read(d->store, &d->saved, err);
}

static int read_key(struct daemon *d, struct error *err)
{
	return secret_setup_read_key(&d->secrets, d->config, err);
}

static int load_secrets(struct daemon *d, struct error *err)
{
	return secret_setup_load(&d->secrets, d->config, d->tenants, d->store, err);
}

static int load_identity(struct daemon *d, struct error *err)
{
	struct identity_config config = {.config = d->config,
	                                 .store = d->store,
	                                 .owner_uid = d->started_by,
	                                 .daemon_uid =
	                                         d->config->user[0] ? geteuid() : d->started_by};

	if (seal_key_load(d->config->store_volatile ? NULL : d->config->state_dir, HOME_SEAL_NAME,
	                  &d->seal, err) < 0)
		return -1;
	config.tenants = d->tenants = tenants_new(d->config);
	d->identity = identity_new(&config);
	if (identity_load(d->identity, err) < 0)
		return -1;
	return preflight_keys(d->config, identity_has_keys(d->identity), err);
}

static int load_templates(struct daemon *d, struct error *err)
{
	const struct templates_config templates = {
		.host.runners = d->runners,
		.host.bases = (const char *const *)d->bases,
		.host.has_roots = d->driver->caps.has_roots,
		.max = d->config->templates_max,
		.tenants = d->tenants,
	};

	if (helpers_start(&d->helpers, d->config, d->bases[0], &d->driver->import_group,
	                  d->secrets.secrets, err) < 0)
		return -1;
	d->templates = templates_new(&templates);
	return install_parts_load(&d->packing, d->config, d->store, d->templates, err);
}

static int lock_down(struct daemon *d, struct error *err)
{
	/* Before the filter: the loop's setup may use any system call. */
	d->loop = loop_new();
	if (store_start(d->store, d->loop, lockdown_seal_store, err) < 0)
		return -1;
	if (d->audit && audit_start(d->audit, lockdown_seal_audit, err) < 0)
		return -1;
	return lockdown_seal(err);
}

static const struct phase phases[] = {
	{check_config, DAEMON_BAD_CONFIG},    {limit_core, DAEMON_NO_LOCKDOWN},
	{open_state, DAEMON_BAD_PLACE},       {start_engine, DAEMON_NO_ENGINE},
	{check_isolation, DAEMON_NOT_STRICT}, {load_runners, DAEMON_BAD_CONFIG},
	{load_policies, DAEMON_BAD_CONFIG},   {load_tls, DAEMON_BAD_CONFIG},
	{open_sockets, DAEMON_BAD_PLACE},     {read_key, DAEMON_BAD_CONFIG},
	{drop_ids, DAEMON_NO_LOCKDOWN},       {open_store, DAEMON_BAD_PLACE},
	{load_identity, DAEMON_BAD_CONFIG},   {load_secrets, DAEMON_BAD_PLACE},
	{load_templates, DAEMON_BAD_PLACE},   {lock_down, DAEMON_NO_LOCKDOWN},
	{start_http, DAEMON_BAD_PLACE},
};

static int run_phases(struct daemon *d)
{
	struct error err = {0};

	for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
		if (phases[i].run(d, &err) < 0) {
			log_error("cannot start", &err);
			d->exit = phases[i].exit;
			/* Another daemon may still adopt what an earlier one left. */
			if (d->driver)
				driver_leave(d->driver);
			return -1;
		}
	}
	return 0;
}

/* Also if only partly started. */
static void take_down(struct daemon *d)
{
	for (size_t i = 0; i < ARRAY_SIZE(d->signals); i++)
		signal_watch_free(d->signals[i]);
	signal_watch_free(d->hangup);
	tls_reload_done(&d->tls_reload);
	/* The server first: its requests release their executions, which still exist. */
	http_server_free(d->http);
	router_free(d->router);
	outputs_free(d->outputs);
	retention_free(d->retention);
	/* Before the sessions: roots of those that outlive us must stay. */
	install_parts_end(&d->packing, d->imports);
	session_service_free(d->sessions);
	if (d->store)
		store_finish(d->store);
	run_records_free(d->executions);
	run_service_free(d->runs);
	install_parts_done(&d->packing);
	templates_free(d->templates);
	timer_free(d->answer_timer);
	loop_lag_stop(&d->lag);
	catalog_mute(d->catalog);
	metrics_row_free(d->metrics_row);
	metrics_free(d->metrics);
	audit_daemon(d, "daemon.stop");
	audit_stop(d->audit);
	audit_row_free(d->audit_row);
	audit_close(d->audit);
	engine_setup_done(&d->engines); /* waits for the engines' cleanup */
	services_free(d->services);
	catalog_free(d->catalog);
	helpers_end(&d->helpers);
	secret_setup_done(&d->secrets);
	seal_key_done(&d->seal);
	identity_free(d->identity);
	tenants_free(d->tenants);
	packages_free(d->packages);
	policies_free(d->policies);
	runners_free(d->runners);
	session_saved_free(d->saved);
	store_close(d->store); /* writes what is queued */
	str_list_free(d->bases);
	loop_free(d->loop);
	tls_files_done(&d->tls);
	fd_close(d->tcp_fd);
	fd_close(d->unix_fd);
	fd_close(d->notify_fd);
	fd_close(d->diag_fd);
	guard_end(&d->socket_guard);
	guard_end(&d->tls_guard);
	fd_close(d->state_lock);
}

enum daemon_exit daemon_run(const struct config *config)
{
	struct daemon d = {
		.config = config,
		.started_by = geteuid(),
		.socket_guard.link = -1,
		.tls_guard.link = -1,
		.state_lock = -1,
		.tcp_fd = -1,
		.unix_fd = -1,
		.notify_fd = -1,
		.diag_fd = -1,
		.helpers = HELPERS_INIT,
	};
	/* A client that disconnects, or a file that may not grow, is a write error. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	if (run_phases(&d) == 0) {
		log_startup(&d);
		audit_daemon(&d, "daemon.start");
		isolation_audit(config, d.audit);
		notify_send(d.notify_fd, "READY=1");
		loop_run(d.loop);
	}
	/* Ours only if we listen there: if it was in use, leave it. */
	if ((d.unix_fd >= 0 || d.http) && d.socket_guard.pid <= 0 && config->socket[0] &&
	    unlink(config->socket) < 0 && errno != ENOENT)
		log_warn("remove %s: %s, ignoring", config->socket, strerror(errno));
	take_down(&d);
	if (d.exit == DAEMON_STOPPED)
		log_info("stopped");
	return d.exit;
}
