/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session_build.h"

#include "base/clock.h"
#include "base/str.h"
#include "core/language/runners.h"
#include "core/session/session_internal.h"
#include "core/template/images.h"

/*
 * Theory of operation. A new box is built when it is its tenant's turn, as boxes of one-shot runs
 * are. Until then the session has no box (session_awaits_box): one with a box of its own is
 * CREATING, the file operations and the next run of an ephemeral one wait. The place of building is
 * given back when the box is ready or gone.
 */

bool session_awaits_box(const struct session *session)
{
	return session->entry.place == SCHEDULER_WAITING;
}

void session_built(struct session *session)
{
	scheduler_out(session->service->scheduler, &session->entry, clock_us());
}

static int create_box(struct session *session, struct error *err)
{
	const struct box_events events = session_box_events(session);
	struct session_service *s = session->service;
	struct driver *driver = s->config.driver;
	struct box_spec spec;

	/* The store keeps the tenant, not the whole description of the box. */
	(void)!str_copy(session->spec.tenant, sizeof(session->spec.tenant), session->tenant);
	session->making_us = clock_us();
	spec = session->spec;
	image_unref(session->library); /* of an earlier box */
	session->library =
		run_service_library(s->config.runs, session->template,
	                            runners_find(s->config.runners, session->language), &spec);
	if (box_create(driver, &spec, &events, &session->box, err) == 0)
		return 0;
	session_built(session);
	return -1;
}

static void uncount_box(struct session *session)
{
	session->service->boxes--;
	session_owner_drop_box(session);
}

static void on_turn(void *ctx)
{
	struct session *session = ctx;
	struct error err = {0};

	if (create_box(session, &err) == 0) {
		session_arm(session);
		session_files_go_on(session);
		session_pump(session);
		return;
	}
	uncount_box(session);
	if (session_mode_has_box(session->mode)) {
		session_fail(session, &err);
		return;
	}
	session_files_end(session, &err);
	session_pump(session);
}

int session_build_box(struct session *session, struct error *err)
{
	struct session_service *s = session->service;
	int waits;

	session->entry = (struct scheduler_entry){
		.work = SCHEDULER_OPEN,
		.queue = session->account ? &session->account->queue : NULL,
		.memory_bytes = session->spec.limits.memory_bytes,
		.patient = true, /* one per session, and sessions are bounded */
		.on_turn = on_turn,
		.ctx = session,
	};
	waits = scheduler_enter(s->scheduler, &session->entry, clock_us(), err);
	if (waits < 0 || (waits == 0 && create_box(session, err) < 0))
		return -1;
	s->boxes++;
	return 0;
}

void session_withdraw_box(struct session *session)
{
	if (!session_awaits_box(session))
		return;
	session_built(session);
	uncount_box(session);
	session_service_check_drained(session->service);
}

void session_destroy_box(struct session *session)
{
	session_withdraw_box(session);
	if (session->box)
		box_destroy(session->box);
}
