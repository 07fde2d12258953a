/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/language.h"

#include "api/internal.h"
#include <stdio.h>
#include <string.h>

#include "api/json/decode.h"
#include "api/op/language_list.h"
#include "base/alloc.h"
#include "core/language/detect.h"
#include "core/language/runners.h"

#define LIST_LEN 120

static struct detect_subject subject_of(const struct decoded_run *run)
{
	return (struct detect_subject){.file_name = run->file_name,
	                               .code = run->request.code ? run->request.code : "",
	                               .len = run->request.code_len};
}

static bool take_sure(struct decoded_run *run, const struct detection *d)
{
	if (d->is_sure)
		run->request.language = xstrdup(d->candidates[0]->name);
	return d->is_sure;
}

bool op_language_take_stated(const struct runners *all, struct decoded_run *run)
{
	const struct detect_subject subject = subject_of(run);
	struct detection d;

	if (run->request.language)
		return true;
	detect_stated(all, &subject, &d);
	return take_sure(run, &d);
}

static void add_name(char list[LIST_LEN], const struct runner *r)
{
	size_t used = strlen(list);

	if (used + strlen(r->name) + 3 < LIST_LEN)
		(void)snprintf(list + used, LIST_LEN - used, "%s%s", used ? ", " : "", r->name);
}

static int refuse_unsure(const struct router *r, const struct detection *d, struct error *err)
{
	char list[LIST_LEN] = "";

	for (size_t i = 0; i < d->count; i++)
		add_name(list, d->candidates[i]);
	if (d->count > 0)
		return error_field(err, "language",
		                   "is missing and cannot be detected with certainty; candidates: "
		                   "%s. Set language, or default_language",
		                   list);
	op_language_names(r, list, sizeof(list));
	return error_field(err, "language",
	                   "is missing and cannot be detected; available: %s. Set language, or "
	                   "default_language",
	                   list);
}

int op_language_choose(const struct router *r, struct decoded_run *run, const char *fallback,
                       struct error *err)
{
	const struct runners *all = r->parts.runners;
	const struct detect_subject subject = subject_of(run);
	struct detection d;

	if (run->request.language)
		return 0;
	if (!fallback && run->event)
		fallback = "python";
	if (fallback && !runners_find(all, fallback))
		return error_field(err, "default_language", "'%.32s' is not supported", fallback);
	detect_language(all, &subject, &d);
	if (take_sure(run, &d))
		return 0;
	if (!fallback)
		return refuse_unsure(r, &d, err);
	run->request.language = xstrdup(fallback);
	return 0;
}
