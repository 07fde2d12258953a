/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reload.h"

#include "base/log.h"

void reload_add(struct reload *r, const struct reload_part *part)
{
	assert(r->count < RELOAD_PARTS_MAX);
	r->parts[r->count++] = *part;
}

static int run_part(const struct reload_part *part)
{
	struct error err = {0};

	if (part->run(part->ctx, &err) == 0) {
		log_info("reloaded the %s", part->name);
		return 0;
	}
	(void)error_wrap(&err, "the old %s stay", part->name);
	log_error("reload", &err);
	return -1;
}

size_t reload_run(const struct reload *r)
{
	size_t failed = 0;

	for (size_t i = 0; i < r->count; i++)
		failed += run_part(&r->parts[i]) < 0;
	return failed;
}
