/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/run_request.h"

#include "base/alloc.h"
#include "base/str.h"
#include "core/template/template.h"
#include "core/template/templates.h"
#include <string.h>

void run_request_done(struct run_request *request)
{
	free(request->request_id);
	free(request->language);
	free(request->code);
	free(request->stdin_data);
	free(request->ask);
	free(request->policy);
	free(request->cwd);
	str_list_free(request->args);
	str_list_free(request->env);
	for (size_t i = 0; i < request->files_count; i++) {
		free(request->files[i].name);
		free(request->files[i].data);
	}
	free(request->files);
	free(request->template_id);
	template_unref(request->template);
	*request = (struct run_request){0};
}

void run_request_free(struct run_request *request)
{
	if (!request)
		return;
	run_request_done(request);
	free(request);
}

#define SOURCE_MODE 0444
#define FILE_MODE   0644

struct exec_file *run_request_files(const struct run_request *request,
                                    const struct exec_source *source)
{
	struct exec_file *files = xcalloc(request->files_count + 1, sizeof(*files));

	files[0] = (struct exec_file){
		.path = source->name,
		.data = source->code,
		.len = source->len,
		.mode = SOURCE_MODE,
		.source = true,
	};
	for (size_t i = 0; i < request->files_count; i++)
		files[i + 1] = (struct exec_file){
			.path = request->files[i].name,
			.data = request->files[i].data,
			.len = request->files[i].len,
			.mode = FILE_MODE,
		};
	return files;
}

char *exec_source_ask(struct exec_source *source, const char *ask)
{
	size_t more = ask ? strlen(ask) : 0;
	char *packed;

	if (!ask)
		return NULL;
	packed = xrealloc_array(NULL, source->len + 1 + more + 1, 1);
	memcpy(packed, source->code, source->len);
	packed[source->len] = '\0'; /* check_code rejects NUL */
	memcpy(packed + source->len + 1, ask, more + 1);
	source->code = packed;
	source->len += 1 + more;
	return packed;
}

int run_request_add_stdin(struct run_request *request, const void *data, size_t len, bool end,
                          struct error *err)
{
	if (!request->stdin_open)
		return error_set(err, ERR_CONFLICT, 0, "stdin has ended");
	if (len > RUN_STDIN_EARLY_MAX - request->stdin_early)
		return error_set(err, ERR_TOO_LARGE, 0,
		                 "data: at most %u bytes are kept for a program that has not been "
		                 "started",
		                 RUN_STDIN_EARLY_MAX);
	request->stdin_data = xrealloc_array(request->stdin_data, request->stdin_len + len + 1, 1);
	memcpy(request->stdin_data + request->stdin_len, data, len);
	request->stdin_len += len;
	request->stdin_early += len;
	request->stdin_open = !end;
	return 0;
}

static char *copy_bytes(const char *data, size_t len)
{
	return data ? xmemdup0(data, len) : NULL;
}

/* The body bounds the sizes; the queue bounds the number of copies. */
struct run_request *run_request_copy(const struct run_request *request)
{
	struct run_request *copy = NEW(struct run_request);

	*copy = *request;
	copy->tenant = NULL;
	copy->key_id = NULL;
	copy->request_id = request->request_id ? xstrdup(request->request_id) : NULL;
	copy->language = request->language ? xstrdup(request->language) : NULL;
	copy->code = copy_bytes(request->code, request->code_len);
	copy->stdin_data = copy_bytes(request->stdin_data, request->stdin_len);
	copy->ask = request->ask ? xstrdup(request->ask) : NULL;
	copy->cwd = request->cwd ? xstrdup(request->cwd) : NULL;
	copy->policy = request->policy ? xstrdup(request->policy) : NULL;
	copy->template_id = request->template_id ? xstrdup(request->template_id) : NULL;
	copy->template = template_ref(request->template);
	copy->args = request->args ? str_list_copy(request->args) : NULL;
	copy->env = request->env ? str_list_copy(request->env) : NULL;
	copy->files = xcalloc(request->files_count + 1, sizeof(*copy->files));
	for (size_t i = 0; i < request->files_count; i++) {
		const struct run_request_file *file = &request->files[i];

		copy->files[i] = (struct run_request_file){
			.name = xstrdup(file->name),
			.data = copy_bytes(file->data, file->len),
			.len = file->len,
		};
	}
	return copy;
}

static uint64_t or_default(uint64_t asked, uint64_t fallback)
{
	return asked ? asked : fallback;
}

struct run_request run_request_fill(const struct run_request *request, char **env)
{
	const struct template *t = request->template;
	struct run_request r = *request;

	if (!t)
		return r;
	r.env = env;
	if (!r.language)
		r.language = t->spec.language;
	r.memory_bytes = or_default(r.memory_bytes, t->spec.memory_bytes);
	r.cpu_millicores = or_default(r.cpu_millicores, t->spec.cpu_millicores);
	r.max_processes = or_default(r.max_processes, t->spec.max_processes);
	/* Reduce a default, not an explicit request, if memory is too small. */
	r.disk_soft = r.disk_bytes == 0;
	r.disk_bytes = or_default(r.disk_bytes, t->spec.disk_bytes);
	return r;
}

int run_request_find_template(const struct templates *all, const char *tenant,
                              struct run_request *request, struct error *err)
{
	if (!request->template_id)
		return 0;
	request->template = templates_get(all, tenant, request->template_id, err);
	return request->template ? 0 : -1;
}
