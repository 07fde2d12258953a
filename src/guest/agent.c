/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/agent.h"

int agent_fail(struct agent *a, uint32_t id, const struct error *err)
{
	struct msg_failed msg = {
		.code = err->code,
		.sys = err->sys,
		.text = wire_str(err->msg),
	};

	a->failed = id;
	put_close(&a->put);
	return msg_failed_encode(&a->ch.out, id, &msg);
}
