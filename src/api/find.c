/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"
#include "core/run/run_record.h"
#include "core/session/session.h"

/*
 * Theory of operation. What another tenant has, what nobody has and what nobody could have get the
 * same answer, word by word: a caller must not learn which ids others use.
 */

struct session *find_session(struct router *r, const struct route_args *args, struct error *err)
{
	struct session *session =
		args->id[0] ? session_find(r->parts.sessions, args->principal->tenant, args->id)
			    : NULL;

	if (!session)
		(void)error_set(err, ERR_SESSION_NOT_FOUND, 0, "no session has this id");
	return session;
}

struct run_record *find_execution(struct router *r, const struct route_args *args,
                                  struct error *err)
{
	struct run_record *e = args->id[0] ? run_records_find(r->parts.executions,
	                                                      args->principal->tenant, args->id)
	                                   : NULL;

	if (!e)
		(void)error_set(err, ERR_EXECUTION_NOT_FOUND, 0, "no execution has this id");
	return e;
}
