/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include "engine/netns_pool.h"

int step_net(struct build *b, struct error *err)
{
	b->net = netns_pool_take(b->nets);
	if (b->net < 0)
		return error_set(err, ERR_BOX_FAILED, -b->net, "network namespace");
	return 0;
}
