/* SPDX-License-Identifier: Apache-2.0 */
#include "api/json/notes.h"

#include "api/json/json.h"
#include "base/alloc.h"
#include "core/session/session.h"
#include <stdlib.h>

json_t *notes_read(const struct session_info *info)
{
	json_t *notes = info->notes ? json_loads(info->notes, 0, NULL) : NULL;

	/* Perhaps another version of notes_write. */
	if (json_is_object(notes))
		return notes;
	json_decref(notes);
	return json_object();
}

void notes_write(struct session *session, json_t *notes)
{
	size_t len;
	cleanup_free char *text = json_write(notes, &len);

	session_set_notes(session, text);
}
