/* SPDX-License-Identifier: Apache-2.0 */
/* A body of POST /api/v1/execute, and the report of a runner: both are untrusted JSON. */
#include <string.h>

#include "api/json/decode.h"
#include "api/json/json.h"
#include "api/json/report.h"
#include "api/reply.h"
#include "base/utf8.h"
#include "fuzz.h"

#define MAX_CODE 1000

static void check_strings(char *const *list)
{
	for (; list && *list; list++)
		require(utf8_is_valid(*list, strlen(*list)));
}

/* What was accepted keeps the contract of struct run_request. */
static void check_request(const struct run_request *r)
{
	require(!r->language || r->language[0]);
	require(r->code && r->code_len > 0 && r->code_len <= MAX_CODE);
	require(strlen(r->code) == r->code_len && utf8_is_valid(r->code, r->code_len));
	require(r->stdin_data || r->stdin_len == 0);
	check_strings(r->args);
	check_strings(r->env);
	for (char *const *e = r->env; e && *e; e++)
		require(strchr(*e, '=') > *e);
	for (size_t i = 0; i < r->files_count; i++)
		require(r->files[i].name && r->files[i].data);
	require(r->timeout_us <= 1000000000000000ULL);
}

/* A rejection has a code and a reason, and can be sent to the caller. */
static void check_refusal(const struct error *err)
{
	json_t *j = reply_error_object(err, "id");
	size_t len;
	char *text;

	require(err->code == ERR_INVALID || err->code == ERR_BAD_JSON ||
	        err->code == ERR_UNKNOWN_FIELD || err->code == ERR_TOO_LARGE);
	require(err->msg[0]);
	text = json_write(j, &len);
	require(utf8_is_valid(text, len));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct decode_limits limits = {.max_code_bytes = MAX_CODE};
	struct decoded_run decoded = {0};
	struct report report = {0};
	struct error err = {0};

	if (decode_exec((const char *)data, size, &limits, &decoded, &err) == 0)
		check_request(&decoded.request);
	else
		check_refusal(&err);
	decoded_run_done(&decoded);
	(void)!report_read((const char *)data, size, &report);
	require(report.result && json_is_array(report.results) && report.error);
	report_done(&report);
	return 0;
}
