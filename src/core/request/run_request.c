/* SPDX-License-Identifier: Apache-2.0 */
#include "core/request/run_request.h"

#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/str.h"
#include "core/template/template.h"
#include "core/template/templates.h"
#include "json/json_dump.h"

void run_request_done(struct run_request *request)
{
	free(request->request_id);
	free(request->language);
	free(request->code);
	free(request->stdin_data);
	free(request->ask);
	free(request->name_ask);
	free(request->policy);
	free(request->cwd);
	free(request->engine);
	str_list_free(request->args);
	str_list_free(request->env);
	str_list_free(request->network_allow);
	str_list_free(request->secrets);
	str_list_free(request->mcp);
	str_list_free(request->options);
	for (size_t i = 0; i < request->files_count; i++) {
		free(request->files[i].name);
		free(request->files[i].data);
	}
	free(request->files);
	free(request->template_id);
	str_list_free(request->packages);
	free(request->lock);
	template_unref(request->template);
	*request = (struct run_request){0};
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

char *exec_source_ask(struct exec_source *source, const struct run_request *request)
{
	const char *ask = request->ask ? request->ask : request->name_ask;
	size_t more = ask ? strlen(ask) : 0, len = source->len;
	char *packed;

	if (!ask)
		return NULL;
	packed = xrealloc_array(NULL, len + 2 + more + 1, 1);
	memcpy(packed, source->code, len);
	/* Tracebacks show lines of the file: the last one of the code must end. */
	if (len > 0 && packed[len - 1] != '\n')
		packed[len++] = '\n';
	packed[len++] = '\0'; /* check_code rejects NUL */
	memcpy(packed + len, ask, more + 1);
	source->code = packed;
	source->len = len + more;
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

static char *copy_text(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

/* The body bounds the sizes; the queue bounds the number of copies. */
struct run_request *run_request_copy(const struct run_request *request)
{
	struct run_request *copy = NEW(struct run_request);

	*copy = *request;
	copy->tenant = NULL;
	copy->key_id = NULL;
	copy->request_id = copy_text(request->request_id);
	copy->language = copy_text(request->language);
	copy->code = copy_bytes(request->code, request->code_len);
	copy->stdin_data = copy_bytes(request->stdin_data, request->stdin_len);
	copy->ask = copy_text(request->ask);
	copy->name_ask = copy_text(request->name_ask);
	copy->cwd = copy_text(request->cwd);
	copy->engine = copy_text(request->engine);
	copy->policy = copy_text(request->policy);
	copy->template_id = copy_text(request->template_id);
	copy->template = template_ref(request->template);
	copy->packages = NULL; /* installed: the template has them */
	copy->lock = NULL;
	copy->args = request->args ? str_list_copy(request->args) : NULL;
	copy->env = request->env ? str_list_copy(request->env) : NULL;
	copy->network_allow = request->network_allow ? str_list_copy(request->network_allow) : NULL;
	copy->secrets = request->secrets ? str_list_copy(request->secrets) : NULL;
	copy->mcp = request->mcp ? str_list_copy(request->mcp) : NULL;
	copy->options = request->options ? str_list_copy(request->options) : NULL;
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

struct run_request run_request_fill(const struct run_request *request, char **env)
{
	const struct template *t = request->template;
	struct run_request r = *request;

	if (!t)
		return r;
	r.env = env;
	if (!r.language)
		r.language = t->spec.language;
	if (!r.memory_bytes)
		r.memory_bytes = t->spec.memory_bytes;
	if (!r.cpu_millicores)
		r.cpu_millicores = t->spec.cpu_millicores;
	if (!r.max_processes)
		r.max_processes = t->spec.max_processes;
	if (!r.disk_bytes)
		r.disk_bytes = t->spec.disk_bytes;
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

/* In the store: JSON. Bytes become base64; text was checked on arrival. */

#define AT(field) offsetof(struct run_request, field)

static const struct field {
	const char *name;
	size_t offset;
	enum {
		TEXT,  /* char * */
		FLAG,  /* bool */
		WORDS, /* char ** */
		NUMBER /* uint64_t */
	} kind;
} fields[] = {
	{"language", AT(language), TEXT},
	{"request_id", AT(request_id), TEXT},
	{"ask", AT(ask), TEXT},
	{"name_ask", AT(name_ask), TEXT},
	{"cwd", AT(cwd), TEXT},
	{"stdin_open", AT(stdin_open), FLAG},
	{"fresh", AT(fresh), FLAG},
	{"background", AT(background), FLAG},
	{"tty_rows", AT(tty_rows), NUMBER},
	{"tty_cols", AT(tty_cols), NUMBER},
	{"receipt", AT(receipt), NUMBER},
	{"args", AT(args), WORDS},
	{"env", AT(env), WORDS},
	{"options", AT(options), WORDS},
	{"timeout_us", AT(timeout_us), NUMBER},
	{"max_output", AT(max_output_bytes), NUMBER},
};

static void set_member(json_t *j, const char *name, json_t *value)
{
	if (value)
		(void)json_object_set_new(j, name, value);
}

static json_t *encode_bytes(const char *data, size_t len)
{
	cleanup_free char *text = base64_encode(data, len);

	return json_string(text);
}

static json_t *encode_list(char *const *words)
{
	json_t *j = words ? json_array() : NULL;

	for (; words && *words; words++)
		(void)json_array_append_new(j, encode_bytes(*words, strlen(*words)));
	return j;
}

static json_t *encode_files(const struct run_request *request)
{
	json_t *j = request->files_count ? json_array() : NULL;

	for (size_t i = 0; i < request->files_count; i++) {
		const struct run_request_file *file = &request->files[i];
		json_t *one = json_object();

		set_member(one, "name", encode_bytes(file->name, strlen(file->name)));
		set_member(one, "data", encode_bytes(file->data, file->len));
		(void)json_array_append_new(j, one);
	}
	return j;
}

/* NULL: not set. */
static json_t *encode_field(const struct field *f, const void *place)
{
	const char *text = f->kind == TEXT ? *(char *const *)place : NULL;
	uint64_t number = f->kind == NUMBER ? *(const uint64_t *)place : 0;

	if (f->kind == WORDS)
		return encode_list(*(char **const *)place);
	if (f->kind == FLAG)
		return *(const bool *)place ? json_true() : NULL;
	if (f->kind == TEXT)
		return text ? json_string(text) : NULL;
	return number ? json_integer((json_int_t)number) : NULL;
}

char *run_request_to_json(const struct run_request *request)
{
	json_auto_t *j = json_object();
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		set_member(j, fields[i].name,
		           encode_field(&fields[i], (const char *)request + fields[i].offset));
	if (request->stdin_len > 0)
		set_member(j, "stdin", encode_bytes(request->stdin_data, request->stdin_len));
	set_member(j, "files", encode_files(request));
	text = json_dump_text(j, JSON_COMPACT);
	assert(text);
	return text;
}

/* Reject the whole text if any part is not as the encoder writes it: half a request is not what the
 * caller asked for. */

/* Return: owned, NUL-terminated; NULL: invalid. */
static char *bytes_of(const json_t *j, size_t *ret_len)
{
	return json_is_string(j)
	               ? base64_decode(json_string_value(j), json_string_length(j), ret_len)
	               : NULL;
}

/* Rejects NUL. */
static char *word_of(const json_t *j)
{
	size_t len = 0;
	char *word = bytes_of(j, &len);

	if (word && strlen(word) == len)
		return word;
	free(word);
	return NULL;
}

static int read_list(const json_t *list, char ***ret_words)
{
	size_t count = json_array_size(list);

	*ret_words = xcalloc(count + 1, sizeof(**ret_words));
	for (size_t i = 0; i < count; i++) {
		(*ret_words)[i] = word_of(json_array_get(list, i));
		if (!(*ret_words)[i])
			return -EBADMSG;
	}
	return json_is_array(list) ? 0 : -EBADMSG;
}

static int read_field(const json_t *value, const struct field *f, void *place)
{
	if (f->kind == WORDS)
		return read_list(value, place);
	if (f->kind == TEXT && json_is_string(value))
		*(char **)place = xstrdup(json_string_value(value));
	else if (f->kind == FLAG && json_is_boolean(value))
		*(bool *)place = json_is_true(value);
	else if (f->kind == NUMBER && json_is_integer(value) && json_integer_value(value) >= 0)
		*(uint64_t *)place = (uint64_t)json_integer_value(value);
	else
		return -EBADMSG;
	return 0;
}

static int read_files(const json_t *j, struct run_request *r)
{
	const json_t *list = json_object_get(j, "files");
	size_t count = json_array_size(list);

	if (!list)
		return 0;
	if (count == 0) /* the encoder omits it */
		return -EBADMSG;
	r->files = xcalloc(count, sizeof(*r->files));
	for (size_t i = 0; i < count; i++) {
		const json_t *one = json_array_get(list, i);
		struct run_request_file *file = &r->files[r->files_count++];

		file->name = word_of(json_object_get(one, "name"));
		file->data = bytes_of(json_object_get(one, "data"), &file->len);
		if (!file->name || !file->data)
			return -EBADMSG;
	}
	return 0;
}

static int read_request(const json_t *j, struct run_request *r)
{
	const json_t *data = json_object_get(j, "stdin");

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const json_t *value = json_object_get(j, fields[i].name);

		if (value && read_field(value, &fields[i], (char *)r + fields[i].offset) < 0)
			return -EBADMSG;
	}
	if (data)
		r->stdin_data = bytes_of(data, &r->stdin_len);
	if (data && !r->stdin_data)
		return -EBADMSG;
	return read_files(j, r);
}

int run_request_from_json(const char *text, struct run_request *ret_request, struct error *err)
{
	json_auto_t *j = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct run_request r = {0};

	if (!json_is_object(j) || read_request(j, &r) < 0) {
		run_request_done(&r);
		return error_set(err, ERR_STORAGE, 0, "the stored request is damaged");
	}
	*ret_request = r;
	return 0;
}
