/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a session's audit entries. */

struct audit;
struct session_info;

/** session_audit - @action: "session.create" or "session.end". @a NULL: audit off. */
void session_audit(struct audit *a, const char *action, const struct session_info *info);
/** session_audit_network - "session.network": it lost network @lost, because of @reason. */
void session_audit_network(struct audit *a, const struct session_info *info, const char *lost,
                           const char *reason);
