/* SPDX-License-Identifier: Apache-2.0 */
#include "core/identity/scope.h"

#include <string.h>

#include "base/str.h"

static const char *const names[] = {
	[SCOPE_UNSET] = NULL,        [SCOPE_PUBLIC] = NULL,           [SCOPE_ANY] = NULL,
	[SCOPE_READ] = "read",       [SCOPE_EXECUTE] = "execute",     [SCOPE_SESSIONS] = "sessions",
	[SCOPE_FILES] = "files",     [SCOPE_TEMPLATES] = "templates", [SCOPE_POLICY] = "policy",
	[SCOPE_METRICS] = "metrics", [SCOPE_SECRETS] = "secrets",     [SCOPE_ADMIN] = "admin",
};
static_assert(ARRAY_SIZE(names) == SCOPE_COUNT, "every scope has its row");

const char *scope_name(enum scope scope)
{
	return names[scope];
}

static enum scope find_scope(const char *name, size_t len)
{
	for (int i = 0; i < SCOPE_COUNT; i++)
		if (names[i] && strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
			return (enum scope)i;
	return SCOPE_COUNT;
}

enum scope scope_find(const char *name)
{
	return find_scope(name, strlen(name));
}

bool scope_allows(uint32_t scopes, enum scope needed)
{
	if (needed == SCOPE_PUBLIC || needed == SCOPE_ANY)
		return true;
	if (needed == SCOPE_UNSET)
		needed = SCOPE_ADMIN;
	return scopes & (SCOPE_BIT(needed) | SCOPE_BIT(SCOPE_ADMIN));
}

void scopes_format(uint32_t scopes, char ret_text[SCOPES_TEXT_LEN])
{
	size_t used = 0;

	ret_text[0] = '\0';
	for (int i = 0; i < SCOPE_COUNT; i++) {
		if (!names[i] || !(scopes & SCOPE_BIT(i)))
			continue;
		/* All scopes fit. */
		(void)!str_format(ret_text + used, SCOPES_TEXT_LEN - used, "%s%s", used ? "," : "",
		                  names[i]);
		used = strlen(ret_text);
	}
}

int scopes_parse(const char *text, uint32_t *ret_scopes, struct error *err)
{
	uint32_t scopes = 0;

	for (;;) {
		size_t len = strcspn(text, ",");
		enum scope scope = find_scope(text, len);

		if (scope == SCOPE_COUNT)
			return error_field(err, "scopes",
			                   "'%.*s' is none of read, execute, sessions, files, "
			                   "templates, policy, metrics, secrets, admin",
			                   len < 32 ? (int)len : 32, text);
		scopes |= SCOPE_BIT(scope);
		if (text[len] == '\0')
			break;
		text += len + 1;
	}
	*ret_scopes = scopes;
	return 0;
}
