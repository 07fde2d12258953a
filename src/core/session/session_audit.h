/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a session's audit entries. */

struct audit;
struct session_info;

/** session_audit - @action: "session.create" or "session.end". @a NULL: audit off. */
void session_audit(struct audit *a, const char *action, const struct session_info *info);
