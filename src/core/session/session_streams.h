/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: what uses a session's box beside its runs, and ends with it; for this folder. */

struct error;
struct session;

/* session_files.c */

void session_files_end(struct session *session, const struct error *err);
/** session_files_drop - no callbacks. */
void session_files_drop(struct session *session);
/** session_files_go_on - the box is gone: make another if an operation waits. */
void session_files_go_on(struct session *session);
/** session_box_spent - an ephemeral session's run ended: destroy its box. */
void session_box_spent(struct session *session);

/* session_ports.c */

void session_ports_end(struct session *session, const struct error *err);
/** session_ports_drop - no callbacks. */
void session_ports_drop(struct session *session);
