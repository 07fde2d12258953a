/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/fake.h"

#include "base/alloc.h"
#include "base/str.h"
#include "driver/internal.h"
#include "io/loop.h"
#include <assert.h>
#include <string.h>

#define FAKE_KEPT_MAX (256u * 1024 * 1024)

struct fake_driver {
	struct driver base;
	struct loop *loop;
	struct list boxes; /* struct fake_box, owned */
	struct list kept;  /* struct kept, owned */
	bool left;
	struct error refusal;
	bool hold_gone, hold_freeze, hold_report;
};

struct kept {
	struct list node;
	char id[BOX_ID_LEN];
	bool frozen;
};

struct received {
	struct list node;
	struct fake_exec exec;
	struct buf stdin_data;
	struct buf file;
};

struct fake_box {
	struct box base;
	struct list node;
	struct list received; /* struct received, owned */
	struct link_events link_events;
	struct box_counters counters;
	bool ready, lost, destroyed, frozen;
};

static struct fake_driver *fake(const struct driver *d)
{
	return CONTAINER_OF(d, struct fake_driver, base);
}

static struct fake_box *fake_box(const struct box *box)
{
	return CONTAINER_OF(box, struct fake_box, base);
}

static void received_free(struct received *t)
{
	struct fake_exec *e = &t->exec;

	list_remove(&t->node);
	for (size_t i = 0; i < e->files_count; i++) {
		free(e->files[i].path);
		free(e->files[i].data);
	}
	free(e->files);
	str_list_free(e->argv);
	str_list_free(e->env);
	free(e->cwd);
	free(e->source);
	free(e->label);
	buf_done(&t->stdin_data);
	buf_done(&t->file);
	free(t);
}

static struct received *received_of(struct fake_box *b, uint32_t id)
{
	struct received *t;

	LIST_FOREACH (t, &b->received, struct received, node)
		if (t->exec.id == id)
			return t;
	t = NEW(struct received);
	t->exec.id = id;
	buf_init(&t->stdin_data, FAKE_KEPT_MAX);
	buf_init(&t->file, FAKE_KEPT_MAX);
	list_append(&b->received, &t->node);
	return t;
}

static char **copy_strings(const struct wire_strs *strs)
{
	char **list = xcalloc(strs->count + 1, sizeof(*list));
	struct wire_bytes item;
	uint32_t pos = 0;

	for (size_t i = 0; wire_strs_next(strs, &pos, &item); i++)
		list[i] = xmemdup0(item.data, item.len);
	return list;
}

/* These decode what our own link encoded. */

static void receive_put_begin(struct received *t, const struct frame *frame)
{
	struct fake_exec *e = &t->exec;
	struct msg_put_begin m;
	int r = msg_put_begin_decode(frame, &m);

	assert(r == 0);
	(void)r;
	e->files = xrealloc_array(e->files, e->files_count + 1, sizeof(*e->files));
	e->files[e->files_count++] = (struct fake_file){.path = xmemdup0(m.path.data, m.path.len),
	                                                .mode = m.mode,
	                                                .source = m.place == WIRE_PLACE_RUN};
}

static void receive_put_data(struct received *t, const struct frame *frame)
{
	struct msg_put_data m;
	int r = msg_put_data_decode(frame, &m);

	assert(r == 0);
	r = buf_add(&t->file, m.data.data, m.data.len);
	assert(r == 0);
	(void)r;
}

static void receive_put_end(struct received *t, const struct frame *frame)
{
	struct fake_file *file = &t->exec.files[t->exec.files_count - 1];

	(void)frame;
	file->data = buf_take(&t->file, &file->len);
}

static void receive_exec(struct received *t, const struct frame *frame)
{
	struct fake_exec *e = &t->exec;
	struct msg_exec m;
	int r = msg_exec_decode(frame, &m);

	assert(r == 0 && !e->argv);
	(void)r;
	e->argv = copy_strings(&m.argv);
	e->env = copy_strings(&m.env);
	e->cwd = xmemdup0(m.cwd.data, m.cwd.len);
	e->stdout_max = m.stdout_max;
	e->stderr_max = m.stderr_max;
	e->report_max = m.report_max;
	e->stdin_open = m.stdin_open;
	e->keep = m.keep;
}

static void receive_beside(struct received *t, const struct frame *frame)
{
	struct fake_exec *e = &t->exec;
	struct msg_beside m;
	int r = msg_beside_decode(frame, &m);

	assert(r == 0 && !e->argv);
	(void)r;
	e->beside = true;
	e->argv = copy_strings(&m.argv);
	e->env = copy_strings(&m.env);
	e->cwd = xmemdup0(m.cwd.data, m.cwd.len);
	e->source = xmemdup0(m.source.data, m.source.len);
	e->stdout_max = m.stdout_max;
	e->stderr_max = m.stderr_max;
	e->stdin_open = m.stdin_open;
	e->rows = m.rows;
	e->cols = m.cols;
}

static void receive_resize(struct received *t, const struct frame *frame)
{
	struct msg_resize m;
	int r = msg_resize_decode(frame, &m);

	assert(r == 0);
	(void)r;
	t->exec.rows = m.rows;
	t->exec.cols = m.cols;
}

static void receive_output_grant(struct received *t, const struct frame *frame)
{
	struct msg_output_grant m;
	int r = msg_output_grant_decode(frame, &m);

	assert(r == 0);
	(void)r;
	t->exec.granted += m.bytes;
}

static void receive_prepare(struct received *t, const struct frame *frame)
{
	struct fake_exec *e = &t->exec;
	struct msg_prepare m;
	int r = msg_prepare_decode(frame, &m);

	assert(r == 0 && !e->argv);
	(void)r;
	e->prepared = true;
	e->argv = copy_strings(&m.argv);
	e->env = copy_strings(&m.env);
}

/* A run has arguments instead of argv. */
static void receive_run(struct received *t, const struct frame *frame)
{
	struct fake_exec *e = &t->exec;
	struct msg_run m;
	int r = msg_run_decode(frame, &m);

	assert(r == 0 && (!e->argv || e->prepared));
	(void)r;
	str_list_free(e->argv);
	e->runner = m.runner;
	e->source = xmemdup0(m.source.data, m.source.len);
	e->argv = copy_strings(&m.args);
	e->stdout_max = m.stdout_max;
	e->stderr_max = m.stderr_max;
	e->report_max = m.report_max;
	e->stdin_open = m.stdin_open;
}

static void receive_stdin(struct received *t, const struct frame *frame)
{
	struct msg_stdin_data m;
	int r = msg_stdin_data_decode(frame, &m);

	assert(r == 0);
	r = buf_add(&t->stdin_data, m.data.data, m.data.len);
	assert(r == 0);
	(void)r;
	t->exec.stdin_data = t->stdin_data.data;
	t->exec.stdin_len = t->stdin_data.len;
}

static void receive_stdin_end(struct received *t, const struct frame *frame)
{
	(void)frame;
	t->exec.stdin_open = false;
}

static void receive_signal(struct received *t, const struct frame *frame)
{
	struct msg_signal m;
	int r = msg_signal_decode(frame, &m);

	assert(r == 0);
	(void)r;
	t->exec.signo = (int)m.signo;
	t->exec.signals++;
}

static void receive_label(struct received *t, const struct frame *frame)
{
	struct msg_label m;
	int r = msg_label_decode(frame, &m);

	assert(r == 0 && !t->exec.label);
	(void)r;
	t->exec.label = xmemdup0(m.text.data, m.text.len);
}

static void receive_ack(struct received *t, const struct frame *frame)
{
	(void)frame;
	t->exec.acked = true;
}

static void (*const receivers[MSG_COUNT])(struct received *t, const struct frame *frame) = {
	[MSG_PUT_BEGIN] = receive_put_begin, [MSG_PUT_DATA] = receive_put_data,
	[MSG_PUT_END] = receive_put_end,     [MSG_EXEC] = receive_exec,
	[MSG_STDIN] = receive_stdin,         [MSG_STDIN_END] = receive_stdin_end,
	[MSG_SIGNAL] = receive_signal,       [MSG_RUN] = receive_run,
	[MSG_LABEL] = receive_label,         [MSG_ACK] = receive_ack,
	[MSG_PREPARE] = receive_prepare,     [MSG_BESIDE] = receive_beside,
	[MSG_RESIZE] = receive_resize,       [MSG_OUTPUT_GRANT] = receive_output_grant,
};

static void listen_to_host(struct fake_box *b)
{
	struct buf *bytes = link_output(b->base.link);
	struct frame frame;
	int used;

	while (bytes->len && (used = frame_parse(bytes->data, bytes->len, &frame)) > 0) {
		assert(frame.type < MSG_COUNT);
		if (receivers[frame.type])
			receivers[frame.type](received_of(b, frame.id), &frame);
		buf_consume(bytes, (size_t)used);
	}
}

static void free_box(struct fake_box *b)
{
	struct received *t;

	LIST_FOREACH (t, &b->received, struct received, node)
		received_free(t);
	list_remove(&b->node);
	link_free(b->base.link);
	free(b);
}

static void finish_box(void *arg)
{
	struct fake_box *b = arg;

	b->base.events.on_gone(b->base.events.ctx);
	free_box(b);
}

static void on_hello(void *ctx, const struct msg_hello *hello)
{
	struct fake_box *b = ctx;

	(void)hello;
	b->ready = true;
	b->base.events.on_ready(b->base.events.ctx);
}

static void on_link_lost(void *ctx, const struct error *err)
{
	struct fake_box *b = ctx;

	b->lost = true;
	b->base.events.on_lost(b->base.events.ctx, err);
}

static struct fake_box *new_box(struct fake_driver *f, const struct box_spec *spec,
                                const struct box_events *events)
{
	struct fake_box *b = NEW(struct fake_box);

	b->base = (struct box){.driver = &f->base,
	                       .events = *events,
	                       .spec = *spec,
	                       .layers = f->base.caps.layers};
	b->link_events =
		(struct link_events){.ctx = b, .on_hello = on_hello, .on_lost = on_link_lost};
	list_init(&b->received);
	list_append(&f->boxes, &b->node);
	b->base.link = link_new(f->loop, b->base.spec.id, &b->link_events, &b->base.events);
	link_set_request(b->base.link, b->base.spec.request_id);
	return b;
}

static int fake_create(struct driver *d, const struct box_spec *spec,
                       const struct box_events *events, struct box **ret_box, struct error *err)
{
	struct fake_driver *f = fake(d);
	struct msg_setup setup = {.version = WIRE_VERSION};
	struct fake_box *b;

	if (error_is_set(&f->refusal)) {
		*err = f->refusal;
		error_clear(&f->refusal);
		return -1;
	}
	b = new_box(f, spec, events);
	link_open(b->base.link, -1, &setup);
	*ret_box = &b->base;
	return 0;
}

static void free_kept(struct kept *kept)
{
	list_remove(&kept->node);
	free(kept);
}

static int fake_adopt(struct driver *d, const struct box_spec *spec,
                      const struct box_events *events, struct box **ret_box, bool *ret_frozen,
                      struct error *err)
{
	struct fake_driver *f = fake(d);
	struct kept *kept;

	LIST_FOREACH (kept, &f->kept, struct kept, node) {
		struct fake_box *b;

		if (!str_equal(kept->id, spec->id))
			continue;
		b = new_box(f, spec, events);
		link_adopt(b->base.link, -1);
		b->frozen = *ret_frozen = kept->frozen;
		free_kept(kept);
		*ret_box = &b->base;
		return 0;
	}
	return error_set(err, ERR_NOT_FOUND, 0, "box %s is gone", spec->id);
}

static void fake_settle(struct driver *d)
{
	struct kept *kept;

	LIST_FOREACH (kept, &fake(d)->kept, struct kept, node)
		free_kept(kept);
}

static void fake_leave(struct driver *d)
{
	fake(d)->left = true;
}

static int fake_freeze(struct box *box, bool frozen, struct error *err)
{
	(void)err;
	fake_box(box)->frozen = frozen;
	return fake(box->driver)->hold_freeze ? 1 : 0;
}

static void fake_counters(struct box *box, enum counters_for purpose,
                          struct box_counters *ret_counters)
{
	(void)purpose;
	*ret_counters = fake_box(box)->counters;
}

static void fake_destroy(struct box *box)
{
	struct fake_box *b = fake_box(box);
	struct fake_driver *f = fake(box->driver);

	if (b->destroyed)
		return;
	listen_to_host(b);
	b->destroyed = true;
	link_close(box->link);
	if (!f->hold_gone)
		loop_defer(f->loop, finish_box, b);
}

static void fake_free(struct driver *d)
{
	struct fake_driver *f = fake(d);
	struct fake_box *b;

	LIST_FOREACH (b, &f->boxes, struct fake_box, node) {
		loop_cancel(f->loop, finish_box, b);
		free_box(b);
	}
	fake_settle(d);
	free(f);
}

/* Tests read the network from fake_spec. */
static void fake_reach(struct box *box)
{
	(void)box;
}

static bool fake_settle_denials(struct box *box, uint64_t wait_us attr_unused)
{
	return !fake(box->driver)->hold_report;
}

static const struct driver_ops fake_ops = {
	.create = fake_create,
	.adopt = fake_adopt,
	.settle = fake_settle,
	.leave = fake_leave,
	.freeze = fake_freeze,
	.reach = fake_reach,
	.settle_denials = fake_settle_denials,
	.counters = fake_counters,
	.destroy = fake_destroy,
	.free = fake_free,
};

struct driver *fake_driver_new(struct loop *loop)
{
	struct fake_driver *f = NEW(struct fake_driver);

	f->base.ops = &fake_ops;
	f->base.name = "fake";
	f->base.caps = (struct driver_caps){.layers = LAYERS_ALL,
	                                    .runtime = "fake",
	                                    .landlock_abi = 4,
	                                    .boxes_max = 1000,
	                                    .can_freeze = true,
	                                    .can_keep = true,
	                                    .has_roots = true,
	                                    .has_packages = true,
	                                    .has_zygotes = true,
	                                    .counts_usage = true,
	                                    .cgroup = "none",
	                                    .ids = "single"};
	f->loop = loop;
	list_init(&f->boxes);
	list_init(&f->kept);
	return &f->base;
}

void fake_keep(struct driver *d, const char *id, bool frozen)
{
	struct kept *kept = NEW(struct kept);

	(void)!str_copy(kept->id, sizeof(kept->id), id);
	kept->frozen = frozen;
	list_append(&fake(d)->kept, &kept->node);
}

size_t fake_kept(const struct driver *d)
{
	const struct kept *kept;
	size_t count = 0;

	LIST_FOREACH (kept, &fake(d)->kept, struct kept, node)
		count++;
	return count;
}

bool fake_has_left(const struct driver *d)
{
	return fake(d)->left;
}

void fake_refuse_next(struct driver *d, const struct error *err)
{
	fake(d)->refusal = *err;
}

void fake_hold_gone(struct driver *d, bool hold)
{
	fake(d)->hold_gone = hold;
}

size_t fake_box_count(const struct driver *d)
{
	size_t count = 0;

	while (fake_box_at(d, count))
		count++;
	return count;
}

struct box *fake_box_at(const struct driver *d, size_t index)
{
	struct fake_box *b;

	LIST_FOREACH (b, &fake(d)->boxes, struct fake_box, node)
		if (index-- == 0)
			return &b->base;
	return NULL;
}

const struct box_spec *fake_spec(const struct box *box)
{
	return &box->spec;
}

bool fake_is_destroyed(const struct box *box)
{
	return fake_box(box)->destroyed;
}

void fake_hold_report(struct driver *d, bool hold)
{
	fake(d)->hold_report = hold;
}

void fake_hold_freeze(struct driver *d, bool hold)
{
	fake(d)->hold_freeze = hold;
}

void fake_frozen(struct box *box)
{
	box->events.on_frozen(box->events.ctx);
}

bool fake_is_frozen(const struct box *box)
{
	return fake_box(box)->frozen;
}

void fake_set_counters(struct box *box, const struct box_counters *counters)
{
	fake_box(box)->counters = *counters;
}

void fake_set_layers(struct box *box, uint32_t layers)
{
	box->layers = layers;
}

const struct fake_exec *fake_exec_of(struct box *box, uint32_t exec_id)
{
	struct fake_box *b = fake_box(box);
	struct received *t;

	if (!b->destroyed)
		listen_to_host(b);
	LIST_FOREACH (t, &b->received, struct received, node)
		if (t->exec.id == exec_id)
			return &t->exec;
	return NULL;
}

const struct fake_exec *fake_exec_last(struct box *box)
{
	struct fake_box *b = fake_box(box);

	if (!b->destroyed)
		listen_to_host(b);
	if (list_is_empty(&b->received))
		return NULL;
	return &LIST_ENTRY(b->received.prev, struct received, node)->exec;
}

static void send_as_agent(struct box *box, struct buf *bytes, int encoded)
{
	size_t used;

	assert(encoded == 0);
	(void)encoded;
	used = link_input(box->link, bytes->data, bytes->len);
	assert(used == bytes->len);
	(void)used;
}

/* Most tests do not care about HELLO: send it before the first message. */
static void send_hello_once(struct box *box)
{
	if (!fake_box(box)->ready)
		fake_ready(box);
}

void fake_ready(struct box *box)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_hello m = {
		.version = WIRE_VERSION, .layers = LINK_AGENT_LAYERS, .landlock_abi = 4};

	send_as_agent(box, &b, msg_hello_encode(&b, 0, &m));
}

void fake_resume(struct box *box, uint32_t last_id, uint32_t count)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_resume m = {.last_id = last_id, .count = count};

	fake_ready(box);
	send_as_agent(box, &b, msg_resume_encode(&b, 0, &m));
}

void fake_describe(struct box *box, const struct box_resumed *what)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_describe m = {.keep = what->keep,
	                         .runner = what->runner,
	                         .stdin_open = what->stdin_open,
	                         .stdin_room = what->stdin_open ? WIRE_STDIN_WINDOW : 0,
	                         .stdin_bytes = what->stdin_bytes,
	                         .text = wire_str(what->label)};

	send_as_agent(box, &b, msg_describe_encode(&b, what->id, &m));
}

void fake_prepared(struct box *box, uint32_t exec_id)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_ready m = {0};

	send_hello_once(box);
	send_as_agent(box, &b, msg_ready_encode(&b, exec_id, &m));
}

void fake_started(struct box *box, uint32_t exec_id)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_started m = {.pid = 2};

	send_hello_once(box);
	send_as_agent(box, &b, msg_started_encode(&b, exec_id, &m));
}

void fake_output(struct box *box, uint32_t exec_id, enum output_stream stream, const char *data,
                 size_t len)
{
	uint8_t number = stream == OUTPUT_STDOUT ? WIRE_STDOUT : WIRE_STDERR;

	while (len > 0) {
		cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
		uint32_t piece = len < FRAME_CHUNK ? (uint32_t)len : FRAME_CHUNK;
		struct msg_output m = {.stream = number, .data = {data, piece}};

		send_as_agent(box, &b, msg_output_encode(&b, exec_id, &m));
		data += piece;
		len -= piece;
	}
}

void fake_report(struct box *box, uint32_t exec_id, const char *json)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_report m = {.data = wire_str(json)};

	send_as_agent(box, &b, msg_report_encode(&b, exec_id, &m));
}

void fake_denial(struct box *box, uint32_t exec_id, uint32_t syscall_number, uint64_t count)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_denial m = {
		.kind = WIRE_DENIAL_SYSCALL, .number = syscall_number, .count = count};

	send_as_agent(box, &b, msg_denial_encode(&b, exec_id, &m));
}

void fake_done(struct box *box, uint32_t exec_id, const struct exec_facts *facts)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_done m = {.signalled = facts->signalled,
	                     .status = facts->status,
	                     .duration_us = facts->duration_us,
	                     .cpu_user_us = facts->cpu_user_us,
	                     .cpu_system_us = facts->cpu_system_us,
	                     .max_rss_kib = facts->max_rss_kib,
	                     .read_bytes = facts->read_bytes,
	                     .write_bytes = facts->write_bytes,
	                     .stdout_bytes = facts->stdout_bytes,
	                     .stderr_bytes = facts->stderr_bytes,
	                     .disk_full = facts->disk_full,
	                     .runner_lost = facts->untaken ? 2 : facts->runner_lost};

	send_as_agent(box, &b, msg_done_encode(&b, exec_id, &m));
}

void fake_exec_failed(struct box *box, uint32_t exec_id, const struct error *err)
{
	cleanup_buf struct buf b = BUF_INIT(FRAME_MAX_LEN);
	struct msg_failed m = {
		.code = (uint32_t)err->code, .sys = err->sys, .text = wire_str(err->msg)};

	send_hello_once(box);
	send_as_agent(box, &b, msg_failed_encode(&b, exec_id, &m));
}

void fake_lost(struct box *box, const struct error *err)
{
	link_fail(box->link, err);
}

void fake_gone(struct box *box)
{
	assert(fake_box(box)->destroyed);
	finish_box(fake_box(box));
}
