/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/reload.h"

#include "base/log.h"

void reload_add(struct reload *r, const struct reload_part *part)
{
	assert(r->count < RELOAD_PARTS_MAX);
	r->parts[r->count++] = *part;
}

size_t reload_run(const struct reload *r)
{
	size_t failed = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct reload_part *part = &r->parts[i];
		struct error err = {0};

		if (part->run(part->ctx, &err) == 0) {
			log_info("reloaded the %s", part->name);
			continue;
		}
		(void)error_wrap(&err, "the old %s stay", part->name);
		log_error("reload", &err);
		failed++;
	}
	return failed;
}
