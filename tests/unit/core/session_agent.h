/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: the agent's part in tests of sessions. */

#include "session_fixture.h"

/* The agent starts what it received last; its runner too, if it is new. Return: the id. */
static inline uint32_t begin(struct box *box)
{
	const struct fake_exec *run = fake_exec_last(box);

	assert_non_null(run);
	assert_non_null(run->argv);
	assert_false(run->keep);
	if (run->runner && run->id == run->runner + 1)
		fake_started(box, run->runner);
	fake_started(box, run->id);
	return run->id;
}

static inline uint32_t runner_of(struct box *box, uint32_t id)
{
	const struct fake_exec *run = fake_exec_of(box, id);

	assert_non_null(run);
	assert_true(run->runner > 0);
	return run->runner;
}

static inline void done(struct box *box, uint32_t id, int status)
{
	const struct exec_facts facts = {
		.status = status, .duration_us = 1500, .stdout_bytes = 8, .stderr_bytes = 8};

	fake_done(box, id, &facts);
}

/* The runner ends with the run. */
static inline void die(struct box *box, uint32_t id, bool signalled, int status)
{
	const struct exec_facts run = {.signalled = signalled,
	                               .status = status,
	                               .stdout_bytes = 8,
	                               .stderr_bytes = 8,
	                               .runner_lost = true};
	const struct exec_facts runner = {.signalled = signalled, .status = status};
	uint32_t runner_id = runner_of(box, id);

	fake_done(box, id, &run);
	fake_done(box, runner_id, &runner);
}

/* Code that ran and succeeded. */
static inline struct run_record *run(struct fixture *f, struct session *session)
{
	struct run_record *e = execute(f, session);
	struct box *box = box_of(f, session);

	done(box, begin(box), 0);
	expect_status(e, OUTCOME_SUCCESS);
	return e;
}
