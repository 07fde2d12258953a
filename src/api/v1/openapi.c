/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/openapi.h"
#include "http/status.h"

void v1_openapi(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct http_answer answer = {
		.status = HTTP_OK,
		.content_type = "application/json",
		.body = (const char *)openapi_json,
		.len = openapi_json_len,
	};

	(void)r;
	(void)args;
	http_reply(req, &answer);
}
