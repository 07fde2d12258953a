/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/engine_setup.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "core/config/config.h"
#include "core/config/engines.h"
#include "daemon/bridge_setup.h"
#include "driver/engine_driver.h"
#include "driver/engine_starter.h"
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPTIONS_MAX 384
#define LISTED_MAX  64 /* of a list: the settings allow no more */
#define RUNNERS_MAX 8
#define BASES_MAX   8
#define LINK_FD     3

/* One engine's command line. What its words point to is the configuration's, or in .texts. */
struct options {
	const struct config *config;
	size_t count;
	struct engine_option all[OPTIONS_MAX];
	char *program, *bridge; /* owned */
};

static void add(struct options *o, struct engine_option option)
{
	if (o->count < OPTIONS_MAX)
		o->all[o->count++] = option;
}

static void add_word(struct options *o, const char *name, const char *word)
{
	add(o, (struct engine_option){.name = name, .word = word});
}

static void add_file(struct options *o, const char *name, const char *path)
{
	add(o, (struct engine_option){.name = name, .word = path, .is_file = true});
}

static void add_number(struct options *o, const char *name, uint64_t number)
{
	add(o, (struct engine_option){.name = name, .number = number});
}

static void add_list(struct options *o, const char *name, char *const *list, size_t max)
{
	for (size_t i = 0; list && list[i] && i < max; i++)
		add_word(o, name, list[i]);
}

/* What every engine gets. */
static void add_common(struct options *o, const struct engine_setup *s)
{
	const struct config *c = o->config;

	add_file(o, "--agent", c->agent_path);
	add_word(o, "--runners", c->runners_dir);
	add_word(o, "--runtime-dir", c->runtime_dir);
	add_number(o, "--uid-base", c->uid_base);
	add_number(o, "--max-memory", c->memory_max_bytes);
	add_number(o, "--max-disk", c->disk_max_bytes);
	add_number(o, "--max-pids", c->processes_max);
	add_number(o, "--max-cpu", c->cpu_max_millicores);
	add_number(o, "--tenant-io", c->io_bytes);
	add_number(o, "--tenant-io-ops", c->io_ops);
	add(o, (struct engine_option){.name = "--log-level",
	                              .word = log_level_name(c->log_level),
	                              .may_differ = true});
	add(o, (struct engine_option){.name = "--log-format",
	                              .word = log_format_name(c->log_format),
	                              .may_differ = true});
	add(o, (struct engine_option){.name = "--lease",
	                              .number = c->session_survive_us / USEC_PER_MS,
	                              .may_differ = true});
	if (access(c->addon_path, R_OK) == 0)
		add_file(o, "--addon", c->addon_path);
	add_list(o, "--roots", (char *const *)(uintptr_t)s->bases, BASES_MAX);
	add_list(o, "--runners", c->runner_dirs, RUNNERS_MAX - 1);
}

static void add_zygotes(struct options *o)
{
	const struct config *c = o->config;

	if (!c->zygotes_enabled || access(c->zygote_path, R_OK) < 0)
		return;
	add_file(o, "--zygote", c->zygote_path);
	add_number(o, "--zygote-forks", c->zygotes_children);
	add_number(o, "--zygote-memory", c->zygotes_memory);
	add_number(o, "--zygote-age", c->zygotes_age_us / USEC_PER_MS);
}

/* One subnet of the host has one bridge. */
static void add_bridge(struct options *o)
{
	const struct config *c = o->config;

	o->bridge = bridge_setup_path(c);
	if (!o->bridge)
		return;
	add_file(o, "--bridge", o->bridge);
	add_word(o, "--bridge-subnet", c->bridge_subnet);
	add_list(o, "--bridge-allow", c->bridge_allow, LISTED_MAX);
	add_list(o, "--resolver", c->bridge_resolvers, LISTED_MAX);
}

static bool is_native(const struct config_engine *e)
{
	return str_equal(e->runtime->name, ENGINE_NATIVE);
}

/* Beside the native engine's program, which can be set. */
static char *program_of(const struct config *c, const struct config_engine *e)
{
	cleanup_free char *copy = xstrdup(c->engine_path);

	return is_native(e) ? xstrdup(c->engine_path)
	                    : xasprintf("%s/%s", dirname(copy), e->runtime->program);
}

static void add_runtime(struct options *o, const struct config_engine *e)
{
	if (e->runtime->word)
		add_word(o, "--runtime", e->runtime->word);
	if (e->binary[0])
		add_file(o, "--binary", e->binary);
	for (char **word = e->words; *word; word += 2)
		add_word(o, word[0], word[1]);
}

static struct options options_of(const struct engine_setup *s, const struct config_engine *e,
                                 bool is_main)
{
	const struct config *c = s->config;
	struct options o = {.config = c, .program = program_of(c, e)};

	add_runtime(&o, e);
	add_common(&o, s);
	/* Images are imported into a group of the default engine. */
	add_number(&o, "--import-memory", is_main ? c->imports_max * c->import_memory_bytes : 0);
	if (is_native(e))
		add_zygotes(&o);
	if (is_native(e) && is_main)
		add_bridge(&o);
	return o;
}

/* Of the second native engine, whose boxes share the network of the host. It differs from the first
 * in what is left out: no zygotes, which would be in another network than their boxes, no imports,
 * no bridge. */
static struct options host_network_of(const struct engine_setup *s, const struct config_engine *e)
{
	struct options o = {.config = s->config, .program = program_of(s->config, e)};

	add_common(&o, s);
	add_number(&o, "--import-memory", 0);
	add_number(&o, "--host-network", 1);
	add_list(&o, "--resolver", s->config->host_network_resolvers, LISTED_MAX);
	return o;
}

static void options_done(struct options *o)
{
	free(o->program);
	free(o->bridge);
}

static struct engine_config config_of(const struct engine_setup *s, const struct config_engine *e,
                                      const struct options *o)
{
	return (struct engine_config){
		.name = e->name,
		.program = o->program,
		.options = o->all,
		.options_count = o->count,
		.agent_path = s->config->agent_path,
		.runtime_dir = s->config->runtime_dir,
		.is_native = is_native(e),
		.strict = s->config->isolation == CONFIG_ISOLATION_STRICT,
		.lease_us = s->config->session_survive_us,
		.ctx = s->ctx,
	};
}

static int start_main(struct engine_setup *s, struct error *err)
{
	const struct config_engine *e = engines_find(s->config, s->config->engine);
	bool has_host = is_native(e) && s->config->host_network_enabled;
	attr_cleanup(options_done) struct options first = options_of(s, e, true);
	attr_cleanup(options_done) struct options second = host_network_of(s, e);
	struct engine_config host = config_of(s, e, &second);
	struct engine_config config = config_of(s, e, &first);

	config.handover = s->custody;
	config.on_engine_lost = host.on_engine_lost = s->on_engine_lost;
	config.host_network = has_host ? &host : NULL;
	return engine_driver_spawn(&config, &s->main, err) < 0
	               ? error_wrap(err, "start the engine %s", config.program)
	               : 0;
}

/* No name of an engine begins with a dash: it is not that of the engine for network host. */
static int name_handover(const struct engine_setup *s, const struct config_engine *e,
                         char ret_name[ENGINE_HANDOVER_LEN])
{
	return str_format(ret_name, ENGINE_HANDOVER_LEN, "%s--%s", s->custody, e->name);
}

/* Of one that is not the default. */
static struct engine_config other_of(const struct engine_setup *s, const struct config_engine *e,
                                     const struct options *o, const char *handover)
{
	struct engine_config config = config_of(s, e, o);

	config.handover = handover;
	config.daemon_uid = s->main->caps.daemon_uid;
	config.starter = s->starter;
	return config;
}

struct table {
	struct engine_command commands[ENGINE_COMMANDS_MAX];
	size_t count;
};

static void serve_starts(const void *ctx, int link)
{
	const struct table *table = ctx;
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE};

	/* Ctrl-C goes to the whole group. */
	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	(void)prctl(PR_SET_NAME, "milliboxd-start");
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if ((link != LINK_FD && dup3(link, LINK_FD, O_CLOEXEC) < 0) ||
	    close_range(LINK_FD + 1, ~0U, 0) < 0)
		_exit(1);
	engine_starter_run(table->commands, table->count, LINK_FD);
}

static int fork_starter(struct engine_setup *s, const struct table *table, struct error *err)
{
	int pair[2];
	int r = fd_socketpair(SOCK_SEQPACKET, pair);

	if (r < 0)
		return error_set(err, ERR_SYSTEM, -r, "socketpair");
	if (guard_fork(&s->guard, pair, serve_starts, table, err) < 0)
		return -1;
	s->starter = engine_starter_new(TAKE_FD(s->guard.link));
	return 0;
}

static void add_command(const struct engine_setup *s, const struct config_engine *e,
                        struct table *table)
{
	attr_cleanup(options_done) struct options o = options_of(s, e, false);
	char name[ENGINE_HANDOVER_LEN] = "";
	struct engine_config config;

	(void)!name_handover(s, e, name); /* it fits */
	config = other_of(s, e, &o, name);
	engine_command_of(&config, &table->commands[table->count++]);
}

static int start_other(struct engine_setup *s, const struct config_engine *e, uint32_t number,
                       struct driver **ret_driver, struct error *err)
{
	attr_cleanup(options_done) struct options o = options_of(s, e, false);
	char name[ENGINE_HANDOVER_LEN] = "";
	struct engine_config config;

	(void)!name_handover(s, e, name);
	config = other_of(s, e, &o, name);
	config.number = number;
	return engine_driver_spawn(&config, ret_driver, err);
}

static void add_driver(struct engine_setup *s, struct driver *d)
{
	d->set = &s->set;
	s->set.list[s->set.count++] = d;
}

static bool is_main(const struct engine_setup *s, const struct config_engine *e)
{
	return str_equal(e->name, s->config->engine);
}

static int start_others(struct engine_setup *s, struct error *err)
{
	struct config_engine *const *all = s->config->engine_list;
	uint32_t number = 0;

	for (; *all; all++) {
		struct driver *d = s->main;

		if (!is_main(s, *all) && start_other(s, *all, number++, &d, err) < 0)
			return error_wrap(err, "engine '%s'", (*all)->name);
		add_driver(s, d);
	}
	return 0;
}

int engine_setup_start(struct engine_setup *s, struct error *err)
{
	struct config_engine *const *all = s->config->engine_list;
	struct table table = {.count = 0};
	int r = start_main(s, err);

	if (r < 0)
		return -1;
	for (size_t i = 0; all[i]; i++)
		if (!is_main(s, all[i]))
			add_command(s, all[i], &table);
	/* With one engine no process keeps rights. */
	if (table.count > 0)
		r = fork_starter(s, &table, err);
	if (r == 0)
		r = start_others(s, err);
	while (table.count > 0)
		engine_command_done(&table.commands[--table.count]);
	return r;
}

int engine_setup_attach(struct engine_setup *s, struct loop *loop, struct error *err)
{
	if (s->starter)
		engine_starter_attach(s->starter, loop);
	for (size_t i = 0; i < s->set.count; i++)
		if (engine_driver_attach_loop(s->set.list[i], loop, err) < 0)
			return -1;
	return 0;
}

void engine_setup_done(struct engine_setup *s)
{
	struct driver *main = TAKE_PTR(s->main);

	while (s->set.count > 0) {
		struct driver *d = s->set.list[--s->set.count];

		main = d == main ? NULL : main;
		driver_free(d);
	}
	driver_free(main); /* the start failed before it was in the set */
	engine_starter_free(TAKE_PTR(s->starter));
	guard_end(&s->guard);
}
