/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/run.h"

#include "api/internal.h"
#include "core/run/run.h"
#include "core/session/session.h"

int op_run_start(struct router *r, const struct op_run_start *start, struct run_record **ret_record,
                 struct error *err)
{
	struct run_request request = *start->request; /* what it owns stays the caller's */

	request.tenant = start->who->tenant;
	request.key_id = start->who->key_id;
	request.request_id = (char *)(uintptr_t)start->request_id; /* core copies it */
	return start->session ? session_execute(start->session, &request, ret_record, err)
	                      : run_start(r->runs, &request, ret_record, err);
}
