/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/decode.h"

#include "api/json/decode_fields.h"
#include <string.h>

void decoded_secret_done(struct decoded_secret *d)
{
	if (d->value)
		explicit_bzero(d->value, d->value_len);
	fields_done(&decode_secret_fields, d);
	*d = (struct decoded_secret){0};
}

static const char *const modes[] = {"header", "placeholder", NULL};
static_assert(ARRAY_SIZE(modes) == SECRET_MODE_COUNT + 1, "every mode has its word");

/* clang-format off */
const struct fields decode_secret_fields = {
	.name = "SecretRequest",
	.description = "Omitted fields keep their values. `value` is always required: a caller that changes the hosts must have it.",
	.rows = (const struct field[]){
		{"value", FIELD_STRING, AT_LEN(struct decoded_secret, value, value_len), .required = true, .min = SECRET_VALUE_MIN, .max = SECRET_VALUE_MAX, .schema = "{\"writeOnly\": true}",
		 .description = "Visible ASCII characters in one line. No response has it."},
		{"hosts", FIELD_STRINGS, AT(struct decoded_secret, hosts),
		 .description = "Requests to these hosts get the secret: `api.example.com[:PORT]` inside TLS, `http://NAME[:PORT]` in plain HTTP. Required for a new secret."},
		{"mode", FIELD_ENUM, AT(struct decoded_secret, mode), GIVEN(struct decoded_secret, mode_given), .words = modes, .schema = "{\"default\": \"header\"}",
		 .description = "`header`: every request gets the header. `placeholder`: the placeholder is replaced in the header that the code sends."},
		{"header", FIELD_STRING, AT(struct decoded_secret, header), .min = 1, .max = SECRET_HEADER_MAX, .schema = "{\"default\": \"Authorization\"}"},
		{"format", FIELD_STRING, AT(struct decoded_secret, format), .schema = "{\"default\": \"Bearer {value}\", \"pattern\": \"\\\\{value\\\\}\"}",
		 .description = "Value of the header, with `{value}` once."},
		{"env", FIELD_STRING, AT(struct decoded_secret, env), .max = SECRET_ENV_MAX,
		 .description = "Variable that has the placeholder in boxes; `\"\"`: none."},
		FIELDS_END,
	},
};
/* clang-format on */

int decode_secret(const char *body, size_t len, struct decoded_secret *ret_secret,
                  struct error *err)
{
	return fields_decode_text(&decode_secret_fields, body, len, NULL, ret_secret, err);
}
