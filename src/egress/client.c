/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd.h"
#include "egress/answer.h"
#include "egress/egress.h"
#include "egress/hello.h"
#include "egress/socks.h"
#include "io/timer.h"
#include "io/watch.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define DRAIN_US   (2 * USEC_PER_SEC)
#define READ_CHUNK 4096

static_assert(HEAD_MAX >= HELLO_MAX, "both are read into the same buffer");

static void on_in(void *ctx, int events);

static void on_timeout(void *ctx);

void client_start(struct box *box, int fd)
{
	struct client *c = calloc(1, sizeof(*c));
	const int one = 1;

	if (!c) {
		(void)fd_close(fd);
		return;
	}
	*c = (struct client){.box = box, .in.fd = fd, .out.fd = -1, .input = BUF_INIT(HEAD_MAX)};
	c->dial.fd = -1;
	list_append(&box->clients, &c->node);
	list_init(&c->paused);
	account_open(&box->account);
	account_open(&box->tenant->account);
	box->egress->connections++;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->in_watch = watch_new(box->egress->loop, fd, on_in, c);
	c->timer = timer_new(box->egress->loop, on_timeout, c);
	timer_start(c->timer, CLIENT_STEP_US);
	watch_set(c->in_watch, WATCH_READ);
	cost_count(c);
}

static void wipe_input(const struct client *c, struct buf *input)
{
	if (c->has_secrets && input->data)
		explicit_bzero(input->data, input->cap);
	buf_done(input);
}

void client_free(struct client *c)
{
	struct box *box = c->box;
	bool was_full = !box_is_below_shared_limits(box) || budget_is_short(&box->egress->memory);

	cost_drop(c);
	dial_stop(c);
	watch_free(c->in_watch);
	watch_free(c->out_watch);
	timer_free(c->timer);
	channel_close(&c->in);
	channel_close(&c->out);
	wipe_input(c, &c->input);
	scrub_free(c->scrub);
	free(c->path);
	flow_done(&c->up);
	flow_done(&c->down);
	list_remove(&c->node);
	list_remove(&c->paused);
	box->account.connections--;
	box->tenant->account.connections--;
	box->egress->connections--;
	free(c);
	if (was_full)
		box_resume_all(box->egress);
	else
		box_resume(box);
}

/* The answer is short and the socket's buffer empty: what does not fit is not missed. */
static void send_answer(struct client *c, const void *data, size_t len)
{
	(void)!channel_send(&c->in, data, len);
}

void client_drain(struct client *c)
{
	c->state = CLIENT_DRAIN;
	watch_free(c->out_watch);
	c->out_watch = NULL;
	channel_close(&c->out);
	(void)!channel_end(&c->in); /* a box that reads so slowly misses the end */
	timer_start(c->timer, DRAIN_US);
	watch_set(c->in_watch, WATCH_READ);
}

/* Reports, then answers: when the program reads the answer, the daemon has the event. */
static void refuse(struct client *c, enum egress_reason reason, const char *detail)
{
	char text[ANSWER_MAX] = "";
	unsigned char bytes[SOCKS_REPLY_LEN] = {0};

	dial_stop(c);
	control_denied(c, reason, detail);
	if (c->state == CLIENT_HELLO) {
		/* The tunnel is open: no answer can be given. */
		client_free(c);
		return;
	}
	if (c->is_socks) {
		socks_reply(answer_socks(reason), bytes);
		send_answer(c, bytes, sizeof(bytes));
	} else {
		send_answer(c, text,
		            answer_http(reason, &c->target, reason == EGRESS_ADDRESS ? "" : detail,
		                        text));
	}
	client_drain(c);
}

static void on_timeout(void *ctx)
{
	struct client *c = ctx;

	if (c->state == CLIENT_DIAL)
		refuse(c, c->dial.lookup ? EGRESS_UNRESOLVED : EGRESS_UNREACHABLE,
		       "no answer in time");
	else
		client_free(c);
}

/* Return: whether the bytes of a tunnel may go on: they are a TLS handshake for its host. */
static bool check_hello(struct client *c)
{
	static const enum egress_reason reasons[] = {
		[HELLO_NOT_TLS] = EGRESS_NO_TLS,
		[HELLO_MALFORMED] = EGRESS_NO_TLS,
		[HELLO_NO_NAME] = EGRESS_NO_SNI,
		[HELLO_ENCRYPTED] = EGRESS_ECH,
	};
	char name[TARGET_HOST_LEN] = "";
	enum hello_result found = hello_parse(c->input.data, c->input.len, name);

	if (found == HELLO_MORE)
		return false;
	if (found == HELLO_NAME && strcmp(name, c->target.host) == 0)
		return true;
	refuse(c, found == HELLO_NAME ? EGRESS_OTHER_SNI : reasons[found], name);
	return false;
}

/* The order of enum rules_verdict. */
static enum egress_reason reason_of(enum rules_verdict verdict)
{
	static const enum egress_reason reasons[] = {
		[RULES_ALLOWED] = EGRESS_REASON_NONE, [RULES_NO_HOST] = EGRESS_NO_HOST,
		[RULES_PORT] = EGRESS_PORT,           [RULES_TUNNEL] = EGRESS_TUNNEL,
		[RULES_METHOD] = EGRESS_METHOD,       [RULES_PATH] = EGRESS_PATH,
		[RULES_ADDRESS] = EGRESS_NO_HOST,
	};

	return reasons[verdict];
}

static enum egress_reason judge(const struct client *c, const char **ret_rule)
{
	const struct box *box = c->box;

	*ret_rule = NULL;
	if (account_is_used_up(&box->account))
		return EGRESS_BYTES;
	return reason_of(rules_match(box->rules, &c->target,
	                             c->is_tunnel || c->is_inner ? NULL : c->method, c->path,
	                             c->path ? strlen(c->path) : 0, ret_rule));
}

/* The last thing a caller does with @c: a refusal may free it. */
static void decide(struct client *c)
{
	const char *rule;
	enum egress_reason reason = judge(c, &rule);

	if (reason != EGRESS_REASON_NONE) {
		refuse(c, reason, rule ? rule : "");
		return;
	}
	c->is_intercepted = c->is_tunnel && vault_covers(c->box->vault, &c->target, true);
	cost_count(c);
	if (c->is_intercepted && budget_is_full(&c->box->egress->memory)) {
		refuse(c, EGRESS_MEMORY, "");
		return;
	}
	c->is_raw =
		c->is_tunnel && !c->is_intercepted && rules_allow_raw(c->box->rules, &c->target);
	c->state = CLIENT_DIAL;
	/* A box that closes now still has its lookup: it counts as a connection until it is over.
	 */
	watch_set(c->in_watch, 0);
	timer_start(c->timer, CLIENT_STEP_US);
	dial_start(c);
}

static bool has_lost_secrets(const struct client *c)
{
	if (!c->has_secrets && !c->is_intercepted)
		return false;
	return !vault_covers(c->box->vault, &c->target, c->is_intercepted);
}

void client_recheck(struct client *c)
{
	const char *rule;
	enum egress_reason reason;

	if ((c->state == CLIENT_READ && !c->is_inner) || c->state == CLIENT_DRAIN)
		return;
	reason = judge(c, &rule);
	if (reason == EGRESS_REASON_NONE && c->is_raw &&
	    !rules_allow_raw(c->box->rules, &c->target))
		reason = EGRESS_NO_TLS;
	if (reason == EGRESS_REASON_NONE && has_lost_secrets(c))
		reason = EGRESS_SECRET_GONE;
	if (reason == EGRESS_REASON_NONE && dial_refusal(c)) {
		reason = EGRESS_ADDRESS;
		rule = dial_refusal(c);
	}
	if (reason == EGRESS_REASON_NONE)
		return;
	control_denied(c, reason, rule ? rule : "");
	client_free(c);
}

/* Return: 1 with the request complete, 0 if bytes are missing, -1 if it was refused. */
static int read_socks(struct client *c)
{
	static const unsigned char no_authentication[] = {5, 0};
	struct error err = {0};
	enum socks_reply reply;
	int n;

	if (!c->is_greeted) {
		n = socks_greeting(c->input.data, c->input.len);
		if (n < 0)
			refuse(c, EGRESS_BAD_REQUEST, "SOCKS5 without authentication is required");
		if (n <= 0)
			return n;
		buf_consume(&c->input, (size_t)n);
		c->is_greeted = true;
		send_answer(c, no_authentication, sizeof(no_authentication));
	}
	n = socks_request(c->input.data, c->input.len, &c->target, &reply, &err);
	if (n < 0)
		refuse(c, reply == SOCKS_BAD_ADDRESS ? EGRESS_BAD_NAME : EGRESS_BAD_REQUEST,
		       err.msg);
	if (n <= 0)
		return n;
	buf_consume(&c->input, (size_t)n);
	c->is_tunnel = true;
	return 1;
}

/* Puts the head that the server gets in place of the one in the buffer. Return: 0, or a negative
 * errno. */
static int rewrite_head(struct client *c, const struct head *head)
{
	struct buf out = BUF_INIT(3 * (size_t)HEAD_MAX + READ_CHUNK);
	int r = 0;

	c->has_secrets = vault_covers(c->box->vault, &head->target, c->is_inner);
	if (c->has_secrets)
		c->scrub = scrub_new(c->box->vault, &head->target, c->is_inner);
	/* All at once: growing would leave copies of secrets behind. */
	if (c->has_secrets && (!c->scrub || buf_reserve(&out, out.max) < 0))
		r = -ENOMEM;
	if (r == 0)
		r = vault_write(c->box->vault, head, c->is_inner, &out);
	if (r == 0)
		r = buf_add(&out, c->input.data + head->size, c->input.len - head->size);
	if (r < 0) {
		wipe_input(c, &out);
		return r;
	}
	c->head_len = out.len - (c->input.len - head->size);
	buf_done(&c->input);
	c->input = out;
	cost_count(c);
	return 0;
}

static void refuse_head(struct client *c, int r)
{
	if (r == -ENOMEM)
		refuse(c, EGRESS_MEMORY, "");
	else
		refuse(c, EGRESS_BAD_REQUEST,
		       r == -E2BIG ? "the request has more than 4 placeholders of secrets"
		                   : "the head of the request is too long");
}

static int read_http(struct client *c)
{
	struct head head;
	struct error err = {0};
	int r = head_parse(c->input.data, c->input.len, c->is_inner ? &c->target : NULL, &head,
	                   &err);

	if (r < 0)
		refuse(c, EGRESS_BAD_REQUEST, err.msg);
	if (r <= 0)
		return r;
	c->target = head.target;
	c->is_tunnel = head.is_connect;
	if (c->is_tunnel) {
		buf_consume(&c->input, head.size);
		return 1;
	}
	memcpy(c->method, head.method, sizeof(c->method));
	c->path = strndup(head.path, head.path_len);
	c->is_chunked = head.chunked;
	c->body_left = head.length;
	head.is_judged = !c->is_inner && rules_look_inside(c->box->rules, &head.target);
	r = c->path ? rewrite_head(c, &head) : -ENOMEM;
	if (r >= 0)
		return 1;
	refuse_head(c, r);
	return -1;
}

static void pass_inner(struct client *c)
{
	if (c->is_untrusted)
		refuse(c, EGRESS_UNTRUSTED, c->dial.detail);
	else
		relay_start(c);
}

static void read_request(struct client *c)
{
	int r;

	c->is_socks = c->input.data[0] == 5 && !c->is_inner;
	/* Who speaks something else may wait for an answer before it sends more. */
	if (!c->is_socks && (c->input.data[0] < 'A' || c->input.data[0] > 'Z')) {
		refuse(c, EGRESS_BAD_REQUEST, "neither HTTP nor SOCKS5");
		return;
	}
	r = c->is_socks ? read_socks(c) : read_http(c);
	if (r > 0 && c->is_inner)
		pass_inner(c);
	else if (r > 0)
		decide(c);
}

/* Return: bytes read, 0 if there are none, -1 if the connection is over. */
static ssize_t read_more(struct client *c)
{
	size_t room = HEAD_MAX - c->input.len; /* a full buffer was refused */
	ssize_t n;

	/* What stays inside of TLS would not wake us up. */
	room = room < READ_CHUNK || c->is_inner ? room : READ_CHUNK;
	if (buf_reserve(&c->input, room) < 0)
		return -1;
	n = channel_recv(&c->in, c->input.data + c->input.len, room);
	if (n == -EAGAIN)
		return 0;
	if (n <= 0)
		return -1;
	c->input.len += (size_t)n;
	cost_count(c);
	return n;
}

/* Its first bytes are those of TLS for its host. */
static void open_tunnel(struct client *c)
{
	if (c->is_intercepted)
		intercept_start(c);
	else
		relay_start(c);
}

static void on_in(void *ctx, int events)
{
	struct client *c = ctx;
	ssize_t n;

	(void)events;
	if (c->state == CLIENT_RELAY || c->state == CLIENT_SECURE) {
		c->state == CLIENT_RELAY ? relay_pump(c) : intercept_step(c);
		return;
	}
	if (c->state == CLIENT_DRAIN)
		buf_reset(&c->input);
	n = read_more(c);
	if (n < 0)
		client_free(c);
	else if (n > 0 && c->state == CLIENT_READ)
		read_request(c);
	else if (n > 0 && c->state == CLIENT_HELLO && check_hello(c))
		open_tunnel(c);
}

void client_read_inner(struct client *c)
{
	c->is_inner = true;
	c->is_tunnel = c->is_socks = false;
	c->state = CLIENT_READ;
	timer_start(c->timer, CLIENT_STEP_US);
	watch_set(c->in_watch, WATCH_READ);
	/* It may be there already, inside of TLS. */
	on_in(c, WATCH_READ);
}

static void answer_connected(struct client *c)
{
	static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
	unsigned char bytes[SOCKS_REPLY_LEN] = {0};

	if (!c->is_socks) {
		send_answer(c, established, sizeof(established) - 1);
		return;
	}
	socks_reply(SOCKS_OK, bytes);
	send_answer(c, bytes, sizeof(bytes));
}

void client_dialed(struct client *c, int fd)
{
	if (fd < 0) {
		refuse(c, c->dial.reason, c->dial.detail);
		return;
	}
	dial_stop(c);
	c->out.fd = fd;
	c->box->connections++;
	c->box->is_changed = true;
	if (c->is_tunnel)
		answer_connected(c);
	if (!c->is_tunnel || c->is_raw) {
		relay_start(c);
		return;
	}
	c->state = CLIENT_HELLO;
	timer_start(c->timer, CLIENT_STEP_US);
	watch_set(c->in_watch, WATCH_READ);
	/* The client may have sent it with its request. */
	if (c->input.len > 0 && check_hello(c))
		open_tunnel(c);
}
