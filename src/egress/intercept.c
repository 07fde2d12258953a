/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "egress/egress.h"
#include "io/timer.h"
#include "io/watch.h"
#include "tls/authority.h"
#include "tls/session.h"
#include <stdio.h>

/*
 * Theory of operation. A tunnel to a host of a secret ends here. The ClientHello was read, and its
 * server name is the host of the tunnel. The proxy is the server of the box, with a certificate of
 * this installation's authority, which only boxes with such secrets trust; then it is a client of
 * the host, which must prove its name to the authorities of egress.ca_file. Then one request passes
 * as a plain one does: parsed, written anew with the secrets, its body and nothing behind it.
 *
 * If the host is not trusted, the request of the box is read before the answer says so.
 */

static struct tls_trust *trust_of(struct egress *e)
{
	struct error err = {0};

	/* Read when it is needed first: few proxies need it. */
	if (!e->trust)
		e->trust = tls_trust_new(e->ca_file, &err);
	if (!e->trust)
		log_error("certificates of authorities", &err);
	return e->trust;
}

static void await(struct watch *watch, const struct channel *c)
{
	watch_set(watch, tls_session_wants_write(c->tls) ? WATCH_WRITE : WATCH_READ);
}

/* The box learns no more than @why, in the response to its request. */
static void distrust(struct client *c, const char *why)
{
	(void)snprintf(c->dial.detail, sizeof(c->dial.detail), "%s", why);
	c->is_untrusted = true;
}

static void await_request(struct client *c)
{
	watch_free(c->out_watch);
	c->out_watch = NULL;
	client_read_inner(c);
}

static void step_server(struct client *c)
{
	struct error err = {0};
	int r = tls_session_handshake(c->out.tls, &err);

	if (r == 0) {
		watch_set(c->in_watch, 0);
		await(c->out_watch, &c->out);
		return;
	}
	if (r < 0)
		distrust(c, err.msg);
	await_request(c);
}

static void on_server(void *ctx, int events)
{
	(void)events;
	step_server(ctx);
}

static void start_server(struct client *c)
{
	struct egress *e = c->box->egress;
	struct tls_trust *trust = trust_of(e);
	struct error err = {0};

	if (trust)
		c->out.tls = tls_session_connect(c->out.fd, c->target.host, trust, &err);
	if (!c->out.tls) {
		distrust(c, trust ? err.msg : "the proxy has no certificates of authorities");
		await_request(c);
		return;
	}
	c->out_watch = watch_new(e->loop, c->out.fd, on_server, c);
	step_server(c);
}

void intercept_step(struct client *c)
{
	struct error err = {0};
	int r = tls_session_handshake(c->in.tls, &err);

	if (r == 0) {
		await(c->in_watch, &c->in);
	} else if (r < 0) {
		log_debug("box %u does not accept the certificate for %s: %s", c->box->id,
		          c->target.host, err.msg);
		client_free(c);
	} else {
		timer_start(c->timer, CLIENT_STEP_US);
		start_server(c);
	}
}

void intercept_start(struct client *c)
{
	struct egress *e = c->box->egress;
	struct error err = {0};
	struct tls_leaf *leaf =
		e->authority ? authority_leaf(e->authority, c->target.host, &err) : NULL;

	c->state = CLIENT_SECURE;
	timer_start(c->timer, CLIENT_STEP_US);
	if (leaf)
		c->in.tls = tls_session_serve(c->in.fd, leaf, &c->input, &err);
	tls_leaf_unref(leaf);
	if (!c->in.tls) {
		/* Without it the tunnel would be one without the secret. */
		log_err("cannot intercept TLS: %s", e->authority ? err.msg : "no authority");
		client_free(c);
		return;
	}
	intercept_step(c);
}
