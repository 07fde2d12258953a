/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include "api/v1/openapi.h"

void v1_openapi(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct http_answer answer = {
		.status = 200,
		.content_type = "application/json",
		.body = (const char *)openapi_json,
		.len = openapi_json_len,
	};

	(void)r;
	(void)args;
	http_reply(req, &answer);
}
