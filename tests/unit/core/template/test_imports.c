/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "core/config/config.h"
#include "core/template/images.h"
#include "core/template/imports.h"
#include "core/template/templates.h"
#include "core/tenant/tenant.h"
#include "core_fixture.h"
#include "import/order.h"
#include "io/loop.h"

#define PATIENCE_US (10 * USEC_PER_SEC)
#define ARCHIVE_MAX (1 << 20)

/* The test is millibox-import: it reads orders and writes answers. */
struct fixture {
	struct config *config;
	struct tenants *tenants;
	struct runners *runners;
	struct templates *templates;
	struct loop *loop;
	struct imports *imports;
	struct import *import;
	char dir[32];
	const char *bases[2];
	int sock; /* the importer's end */
	struct import_order order;
	int in, out; /* what came with it */
	unsigned rooms, done, failed;
	struct error failure, err;
};

static void on_room(void *ctx)
{
	((struct fixture *)ctx)->rooms++;
}

static void on_done(void *ctx, struct template *t)
{
	((struct fixture *)ctx)->done++;
	assert_non_null(t);
}

static void on_failed(void *ctx, const struct error *err)
{
	struct fixture *f = ctx;

	f->failed++;
	f->failure = *err;
}

static int set_up(void **state)
{
	static const struct config_override overrides[] = {{"imports.archive", "1Mi"},
	                                                   {"imports.max", "2"},
	                                                   {"imports.max_per_tenant", "1"},
	                                                   {"imports.layers", "5"}};
	struct fixture *f = NEW(struct fixture);
	struct tenant_settings alice = {.name = "alice"};
	int pair[2];

	alice.quotas[QUOTA_TEMPLATES] = 1;
	alice.quotas[QUOTA_IMAGES] = 1000;
	f->in = f->out = -1;
	f->config = config_parse(NULL, 0, "test", overrides, ARRAY_SIZE(overrides), &f->err);
	assert_non_null(f->config);
	f->tenants = tenants_new(f->config);
	assert_non_null(tenants_add(f->tenants, &alice, &f->err));
	f->runners = fixture_runners();
	memcpy(f->dir, "/tmp/imports-XXXXXX", sizeof("/tmp/imports-XXXXXX"));
	assert_non_null(mkdtemp(f->dir));
	f->bases[0] = f->dir;
	f->loop = loop_new();
	f->templates = templates_new(&(struct templates_config){.host.runners = f->runners,
	                                                        .host.bases = f->bases,
	                                                        .max = 9,
	                                                        .tenants = f->tenants});
	assert_int_equal(fd_socketpair(SOCK_SEQPACKET, pair), 0);
	f->sock = pair[1];
	f->imports = imports_new(&(struct imports_config){.loop = f->loop,
	                                                  .templates = f->templates,
	                                                  .config = f->config,
	                                                  .tenants = f->tenants,
	                                                  .roots = f->dir,
	                                                  .sock = pair[0]});
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)fd_close(f->in);
	(void)fd_close(f->out);
	(void)fd_close(f->sock);
	imports_free(f->imports);
	templates_free(f->templates);
	tenants_free(f->tenants);
	loop_free(f->loop);
	runners_free(f->runners);
	config_free(f->config);
	(void)rmdir(f->dir);
	free(f);
	return 0;
}

static int begin(struct fixture *f, const char *tenant, const char *id, uint64_t length)
{
	const struct import_events events = {f, on_room, on_done, on_failed};
	const struct import_request request = {.tenant = tenant, .id = id, .length = length};

	f->err = (struct error){0};
	return imports_begin(f->imports, &request, &events, &f->import, &f->err);
}

/* The daemon's order. Return: whether there is one. */
static bool take_order(struct fixture *f)
{
	int fds[FD_PASS_MAX];
	size_t count = 0;
	ssize_t n;

	(void)fcntl(f->sock, F_SETFL, O_NONBLOCK);
	n = fd_recv(f->sock, &f->order, sizeof(f->order), fds, &count);
	if (n <= 0)
		return false;
	assert_int_equal(n, sizeof(f->order));
	assert_int_equal(count, f->order.op == IMPORT_OP_IMPORT ? 2 : 0);
	if (count == 2) {
		f->in = fds[0];
		f->out = fds[1];
	}
	return true;
}

static void say(struct fixture *f, const char *text)
{
	assert_int_equal(fd_write_all(f->out, text, strlen(text)), 0);
}

static void turn_until(struct fixture *f, const unsigned *count)
{
	uint64_t deadline = clock_us() + PATIENCE_US;

	while (*count == 0) {
		assert_true(clock_us() < deadline);
		loop_run_once(f->loop, false);
	}
}

static void begin_good(struct fixture *f)
{
	assert_int_equal(begin(f, "alice", "img", IMPORT_LENGTH_UNKNOWN), 0);
	assert_true(take_order(f));
	assert_int_equal(f->order.op, IMPORT_OP_IMPORT);
}

static void an_order_has_the_limits_and_what_the_quota_leaves(void **state)
{
	struct fixture *f = *state;

	begin_good(f);
	assert_int_equal(f->order.limits.archive_bytes, ARCHIVE_MAX);
	assert_int_equal(f->order.limits.root_bytes, 1000);
	assert_int_equal(f->order.limits.layers, 5);
	assert_int_equal(f->order.limits.cpu_seconds, 900);
	assert_memory_equal(f->order.name, IMAGE_ROOT_PREFIX, strlen(IMAGE_ROOT_PREFIX));
	import_cancel(f->import);
	assert_int_equal(imports_count(f->imports), 0);
}

static void those_under_way_have_the_quota_among_them(void **state)
{
	struct fixture *f = *state;
	struct import *first, *second;

	f->config->imports_max = f->config->imports_max_tenant = 3;
	f->config->import_root_bytes = 600;
	begin_good(f);
	first = f->import;
	assert_int_equal(f->order.limits.root_bytes, 600);
	assert_int_equal(begin(f, "alice", "second", 5), 0);
	second = f->import;
	assert_true(take_order(f));
	assert_int_equal(f->order.limits.root_bytes, 400);
	assert_int_equal(begin(f, "alice", "third", 5), -1);
	assert_int_equal(f->err.code, ERR_QUOTA);
	assert_string_equal(f->err.field, "quota.images");
	/* Other tenants are not affected. */
	assert_int_equal(begin(f, "default", "third", 5), 0);
	import_cancel(f->import);
	import_cancel(first);
	assert_int_equal(begin(f, "alice", "third", 5), 0);
	import_cancel(f->import);
	import_cancel(second);
}

static void progress_is_shown_and_then_the_template_is_there(void **state)
{
	struct fixture *f = *state;
	struct import_info info;
	uint64_t deadline = clock_us() + PATIENCE_US;

	begin_good(f);
	assert_true(imports_find(f->imports, "alice", "img", &info));
	assert_int_equal(info.state, IMPORT_RECEIVING);
	assert_int_equal(import_write(f->import, "abc", 3), 3);
	import_end(f->import);
	/* In pieces, with unrelated lines in between. */
	say(f, "P 3 1 10 ");
	say(f, "100\nP 9 x 1 1\nP 9 9\nP 3 2 20 300\n");
	do {
		assert_true(clock_us() < deadline);
		loop_run_once(f->loop, false);
		assert_true(imports_at(f->imports, "alice", 0, &info));
	} while (info.layer != 2);
	assert_int_equal(info.state, IMPORT_UNPACKING);
	assert_int_equal(info.received, 3);
	assert_int_equal(info.layers, 3);
	assert_int_equal(info.entries, 20);
	assert_int_equal(info.bytes, 300);
	assert_false(imports_find(f->imports, "default", "img", &info));
	assert_false(imports_at(f->imports, "default", 0, &info));
	say(f, "{\"disk_bytes\": 500, \"env\": [\"A=b\", \"LD_PRELOAD=x\"]}\n");
	f->out = fd_close(f->out);
	turn_until(f, &f->done);
	assert_false(imports_find(f->imports, "alice", "img", &info));
	assert_string_equal(templates_find(f->templates, "alice", "img")->spec.env[0], "A=b");
	assert_null(templates_find(f->templates, "alice", "img")->spec.env[1]);
	assert_int_equal(tenants_find(f->tenants, "alice")->image_bytes, 500);
	assert_false(take_order(f));
}

static void an_importers_refusal_is_reported(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *answer;
		enum error_code code;
		const char *field;
	} rows[] = {
		{"{\"error\": \"bad\", \"limit\": \"\"}", ERR_INVALID, ""},
		{"{\"error\": \"many\", \"limit\": \"entries\"}", ERR_TOO_LARGE, "imports.entries"},
		{"{\"error\": \"x\", \"limit\": \"../etc\"}", ERR_INVALID, ""},
		{"{\"error\": \"large\", \"limit\": \"root\"}", ERR_QUOTA, "quota.images"},
		{"{\"disk_bytes\": 5}", ERR_UNAVAILABLE, ""},
		{"no JSON\n", ERR_UNAVAILABLE, ""},
		{"", ERR_UNAVAILABLE, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin_good(f);
		say(f, rows[i].answer);
		f->in = fd_close(f->in);
		f->out = fd_close(f->out);
		f->failed = 0;
		turn_until(f, &f->failed);
		assert_int_equal(f->failure.code, rows[i].code);
		assert_string_equal(f->failure.field, rows[i].field);
		assert_int_equal(imports_count(f->imports), 0);
	}
	assert_int_equal(f->done, 0);
}

static void a_root_that_exceeds_the_quota_after_all_is_removed(void **state)
{
	struct fixture *f = *state;
	char name[IMPORT_NAME_LEN];

	begin_good(f);
	memcpy(name, f->order.name, sizeof(name));
	say(f, "{\"disk_bytes\": 1001}\n");
	f->out = fd_close(f->out);
	turn_until(f, &f->failed);
	assert_int_equal(f->failure.code, ERR_QUOTA);
	assert_true(take_order(f));
	assert_int_equal(f->order.op, IMPORT_OP_REMOVE);
	assert_string_equal(f->order.name, name);
	assert_null(templates_find(f->templates, "alice", "img"));
}

static void an_oversized_result_is_a_failure(void **state)
{
	struct fixture *f = *state;
	char junk[4096];

	begin_good(f);
	memset(junk, 'j', sizeof(junk));
	for (size_t i = 0; i < 2 * IMPORT_RESULT_MAX / sizeof(junk); i++) {
		assert_int_equal(fd_write_all(f->out, junk, sizeof(junk)), 0);
		loop_run_once(f->loop, false);
		loop_run_once(f->loop, false);
	}
	f->out = fd_close(f->out);
	turn_until(f, &f->failed);
	assert_int_equal(f->failure.code, ERR_UNAVAILABLE);
}

static void an_archive_has_a_bound_however_it_comes(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *data = xcalloc(1, ARCHIVE_MAX);
	size_t sent = 0;

	assert_int_equal(begin(f, "alice", "img", ARCHIVE_MAX + 1), -1);
	assert_int_equal(f->err.code, ERR_TOO_LARGE);
	assert_string_equal(f->err.field, "imports.archive");
	begin_good(f);
	(void)fcntl(f->in, F_SETFL, O_NONBLOCK);
	while (sent < ARCHIVE_MAX) {
		char drop[65536];

		sent += import_write(f->import, data, ARCHIVE_MAX - sent);
		while (read(f->in, drop, sizeof(drop)) > 0)
			;
	}
	assert_int_equal(f->failed, 0);
	assert_int_equal(import_write(f->import, "x", 1), 0);
	assert_int_equal(f->failed, 1);
	assert_int_equal(f->failure.code, ERR_TOO_LARGE);
	assert_int_equal(imports_count(f->imports), 0);
}

static void there_is_room_again_when_the_importer_has_read(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *data = xcalloc(1, ARCHIVE_MAX);
	char drop[65536];
	size_t taken;

	begin_good(f);
	taken = import_write(f->import, data, ARCHIVE_MAX);
	assert_true(taken > 0 && taken < ARCHIVE_MAX); /* what a pipe holds */
	assert_true(read(f->in, drop, sizeof(drop)) > 0);
	turn_until(f, &f->rooms);
	/* An importer that has given up reads everything: its answer says why. */
	f->in = fd_close(f->in);
	assert_int_equal(import_write(f->import, data, 1000), 1000);
	import_cancel(f->import);
}

static void a_refused_import_reads_no_byte(void **state)
{
	struct fixture *f = *state;
	struct import *first;

	assert_int_equal(begin(f, "alice", "a/b", 5), -1);
	assert_string_equal(f->err.field, "id");
	assert_int_equal(begin(f, "alice", "shell", 5), -1);
	assert_int_equal(f->err.code, ERR_CONFLICT);
	f->config->imports_queued = 0;
	begin_good(f);
	first = f->import;
	assert_int_equal(begin(f, "alice", "other", 5), -1);
	assert_int_equal(f->err.code, ERR_BUSY);
	assert_int_equal(begin(f, "default", "other", 5), 0);
	import_cancel(f->import);
	import_cancel(first);
}

static struct import *begin_of(struct fixture *f, const char *tenant, const char *id)
{
	assert_int_equal(begin(f, tenant, id, 5), 0);
	return f->import;
}

static enum import_state state_of(struct fixture *f, const char *tenant, const char *id)
{
	struct import_info info;

	assert_true(imports_find(f->imports, tenant, id, &info));
	return info.state;
}

static void turn(struct fixture *f)
{
	for (int i = 0; i < 5; i++)
		loop_run_once(f->loop, false);
}

/* With one place for all: the tenants alternate, however many wait for each. */
static void tenants_take_turns(void **state)
{
	struct fixture *f = *state;
	struct import *a[3], *b[2];

	f->config->imports_max = 1;
	tenants_find(f->tenants, "alice")->limits[QUOTA_TEMPLATES] = 0;
	a[0] = begin_of(f, "alice", "a0");
	assert_true(take_order(f));
	a[1] = begin_of(f, "alice", "a1");
	a[2] = begin_of(f, "alice", "a2");
	b[0] = begin_of(f, "default", "b0");
	b[1] = begin_of(f, "default", "b1");
	assert_int_equal(state_of(f, "alice", "a1"), IMPORT_WAITING);
	assert_int_equal(import_write(a[1], "abcde", 5), 0);
	assert_false(take_order(f));
	import_cancel(a[0]);
	turn(f);
	assert_int_equal(state_of(f, "alice", "a1"), IMPORT_RECEIVING);
	assert_int_equal(f->rooms, 1);
	assert_int_equal(import_write(a[1], "abcde", 5), 5);
	import_cancel(a[1]);
	turn(f);
	assert_int_equal(state_of(f, "default", "b0"), IMPORT_RECEIVING);
	assert_int_equal(state_of(f, "alice", "a2"), IMPORT_WAITING);
	import_cancel(b[0]);
	turn(f);
	assert_int_equal(state_of(f, "alice", "a2"), IMPORT_RECEIVING);
	import_cancel(b[1]); /* its client left */
	import_cancel(a[2]);
	turn(f);
	assert_int_equal(imports_count(f->imports), 0);
}

static void a_full_queue_rejects_the_tenant_that_filled_it(void **state)
{
	struct fixture *f = *state;
	struct import *all[6];
	size_t n = 0;

	f->config->imports_queued = 3;
	tenants_find(f->tenants, "alice")->limits[QUOTA_TEMPLATES] = 0;
	all[n++] = begin_of(f, "alice", "a0");
	all[n++] = begin_of(f, "alice", "a1");
	all[n++] = begin_of(f, "alice", "a2");
	all[n++] = begin_of(f, "alice", "a3");
	assert_int_equal(begin(f, "alice", "a4", 5), -1);
	assert_int_equal(f->err.code, ERR_BUSY);
	assert_string_equal(f->err.msg, "1 imports are running and 3 waiting");
	all[n++] = begin_of(f, "default", "b0"); /* runs */
	all[n++] = begin_of(f, "default", "b1"); /* waits: it has no share yet */
	assert_int_equal(begin(f, "default", "b2", 5), -1);
	while (n > 0)
		import_cancel(all[--n]);
}

/* An empty body ends before its turn; a quota that others used up meanwhile is a failure. */
static void what_happened_while_it_waited_counts_at_its_turn(void **state)
{
	struct fixture *f = *state;
	struct import *first, *second;

	first = begin_of(f, "default", "first");
	second = begin_of(f, "default", "second");
	import_end(second);
	import_cancel(first);
	turn(f);
	assert_int_equal(state_of(f, "default", "second"), IMPORT_UNPACKING);
	import_cancel(second);
	first = begin_of(f, "alice", "first");
	second = begin_of(f, "alice", "second");
	tenants_find(f->tenants, "alice")->image_bytes = 1000;
	import_cancel(first);
	turn(f);
	assert_int_equal(f->failed, 1);
	assert_int_equal(f->failure.code, ERR_QUOTA);
	assert_int_equal(imports_count(f->imports), 0);
	tenants_find(f->tenants, "alice")->image_bytes = 0;
}

static void leftovers_are_swept_and_what_is_used_is_not(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *used = xasprintf("%s/img-used", f->dir);
	cleanup_free char *left = xasprintf("%s/img-left", f->dir);
	cleanup_free char *other = xasprintf("%s/other", f->dir);
	struct image *image = images_hold(templates_images(f->templates),
	                                  &(struct image_record){"alice", "img-used", 1}, &f->err);

	assert_int_equal(mkdir(used, 0700) + mkdir(left, 0700) + mkdir(other, 0700), 0);
	imports_sweep(f->imports);
	assert_true(take_order(f));
	assert_int_equal(f->order.op, IMPORT_OP_REMOVE);
	assert_string_equal(f->order.name, "img-left");
	assert_false(take_order(f));
	image_unref(image); /* the last box on it has ended */
	assert_true(take_order(f));
	assert_string_equal(f->order.name, "img-used");
	assert_int_equal(rmdir(used) + rmdir(left) + rmdir(other), 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(an_order_has_the_limits_and_what_the_quota_leaves),
		UNIT(those_under_way_have_the_quota_among_them),
		UNIT(progress_is_shown_and_then_the_template_is_there),
		UNIT(an_importers_refusal_is_reported),
		UNIT(a_root_that_exceeds_the_quota_after_all_is_removed),
		UNIT(an_oversized_result_is_a_failure),
		UNIT(an_archive_has_a_bound_however_it_comes),
		UNIT(there_is_room_again_when_the_importer_has_read),
		UNIT(a_refused_import_reads_no_byte),
		UNIT(tenants_take_turns),
		UNIT(a_full_queue_rejects_the_tenant_that_filled_it),
		UNIT(what_happened_while_it_waited_counts_at_its_turn),
		UNIT(leftovers_are_swept_and_what_is_used_is_not),
	};

	(void)signal(SIGPIPE, SIG_IGN); /* as in the daemon */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
