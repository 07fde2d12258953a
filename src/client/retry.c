/* SPDX-License-Identifier: Apache-2.0 */
#include "client/retry.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/id.h"

/* A daemon that restarts does not listen for a moment. */
#define ATTEMPTS_MAX 3
#define ATTEMPT_US   (100 * USEC_PER_MS)
#define CROWD_US     USEC_PER_SEC
#define WAIT_MAX_S   3600
#define TOLD_US      USEC_PER_SEC /* shorter waits are not worth a word */

/* All who were refused together would come back together. Return: @least and up to a half more. */
static uint64_t spread(uint64_t least)
{
	uint16_t random;

	id_random_bytes(&random, sizeof(random));
	return least + least / 2 * random / UINT16_MAX;
}

/* Return: as retry_refused. */
static int wait_for_turn(struct retry *retry, uint64_t wait_us, struct error *err)
{
	struct pollfd cancel = {.fd = retry->cancel_fd > 0 ? retry->cancel_fd : -1,
	                        .events = POLLIN};

	if (clock_us() + wait_us > retry->until_us)
		return 0;
	if (retry->on_busy && !retry->told && wait_us >= TOLD_US) {
		retry->on_busy(retry->ctx);
		retry->told = true;
	}
	if (poll(&cancel, 1, (int)(wait_us / USEC_PER_MS)) <= 0)
		return 1;
	error_clear(err);
	return error_set(err, ERR_UNAVAILABLE, ECANCELED, "stopped");
}

int retry_refused(struct retry *retry, const json_t *problem, struct error *err)
{
	const json_t *after = json_object_get(problem, "retry_after");
	json_int_t seconds = json_integer_value(after);
	uint64_t wait_us;

	if (!json_is_integer(after) || seconds < 0 || seconds > WAIT_MAX_S)
		return 0;
	/* Whatever answers: no loop without a pause. */
	wait_us = seconds > 0 ? (uint64_t)seconds * USEC_PER_SEC : ATTEMPT_US;
	return wait_for_turn(retry, spread(wait_us), err);
}

int retry_unreached(struct retry *retry, struct error *err)
{
	bool crowded = err->sys == EAGAIN;
	int again;

	if (err->code != ERR_UNAVAILABLE || (!crowded && err->sys != ECONNREFUSED))
		return 0;
	if (!crowded && retry->attempts++ == ATTEMPTS_MAX)
		return 0;
	again = wait_for_turn(retry, spread(crowded ? CROWD_US : retry->attempts * ATTEMPT_US),
	                      err);
	if (again > 0)
		error_clear(err);
	return again;
}
