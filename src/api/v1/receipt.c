/* SPDX-License-Identifier: Apache-2.0 */
#include "api/v1/v1.h"

#include "api/json/json.h"
#include "api/reply.h"
#include "core/run/receipt.h"
#include "core/run/run_service.h"
#include "http/status.h"
#include "seal/seal.h"

void v1_receipt_key(struct router *r, struct http_request *req, const struct route_args *args)
{
	const struct seal_key *key = run_service_seal(r->runs);
	char id[SEAL_ID_LEN + 1], text[SEAL_PUBLIC_TEXT + 1];
	struct error err = {0};
	json_t *j;

	(void)args;
	if (!key) {
		(void)error_set(&err, ERR_UNAVAILABLE, 0, "this daemon signs no receipts");
		reply_error(req, &err);
		return;
	}
	j = json_object();
	seal_key_id(key->public, id);
	seal_public_print(key->public, text);
	json_set(j, "format", json_string(RECEIPT_FORMAT));
	json_set(j, "algorithm", json_string("ed25519"));
	json_set(j, "key_id", json_string(id));
	json_set(j, "public_key", json_string(text));
	reply_json(req, HTTP_OK, j);
}
