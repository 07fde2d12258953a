/* SPDX-License-Identifier: Apache-2.0 */
#include "client/handle.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/size.h"
#include "client/file_call.h"
#include "http/status.h"

#define READ_MAX  (256 * MIB)
#define LIST_PAGE 1000
#define TREE_MAX  10000
#define MODE_MAX  07777

struct millibox_list {
	json_t *entries; /* owned */
};

/* Names the reason that the daemon cannot know. */
static int explain(const struct file_call *call, struct error *err)
{
	if (call->failure == 0 || call->failure == -ECANCELED)
		return -1;
	error_clear(err);
	if (call->failure == -ENOBUFS)
		return error_set(err, ERR_TOO_LARGE, EFBIG,
		                 "the file is too large for memory: use millibox_file_download");
	return error_set(err, ERR_SYSTEM, -call->failure, "%s the descriptor",
	                 call->download ? "write to" : "read from");
}

/* What a descriptor has given cannot be read again. */
static bool can_repeat(const struct file_call *call)
{
	return call->failure == 0 && (call->download || call->memory || call->taken == 0);
}

/* One attempt; see file_call_run. Return: 1: again, 0, or -1. */
static int try_file(struct millibox_client *client, struct file_call *call, struct retry *retry,
                    json_t **ret_answer, int *ret_status, struct error *err)
{
	int r = file_call_run(call, &client->endpoint, ret_answer, ret_status, err), again = 0;

	if (can_repeat(call) && r < 0)
		again = retry_unreached(retry, err);
	else if (can_repeat(call) && *ret_status >= HTTP_BAD_REQUEST)
		again = retry_refused(retry, *ret_answer, err);
	if (again == 0)
		return r;
	json_decref(TAKE_PTR(*ret_answer));
	call->taken = 0;
	return again;
}

static int send_file(struct millibox_client *client, struct file_call *call, struct error *err)
{
	struct retry retry = client_retry(client);
	json_t *answer = NULL;
	int status = 0, r = 1;

	call->cancel_fd = client->cancel_fd;
	while (r > 0)
		r = try_file(client, call, &retry, &answer, &status, err);
	if (r < 0)
		return explain(call, err);
	if (status >= HTTP_BAD_REQUEST)
		return client_refuse(client, status, answer, err);
	client_keep(client, answer);
	return 0;
}

static int transfer(struct millibox_session *session, struct file_call *call, const char *path,
                    const char *query)
{
	struct millibox_client *client = session->client;
	struct error err = {0};
	cleanup_free char *url = NULL;

	if (!path)
		return client_missing(client, "path");
	if (client_begin(client) < 0)
		return -1;
	client->progress_bytes = 0;
	call->on_bytes = client_progress;
	call->ctx = client;
	call->path = url = api_file_path(session->id, path, query, &err);
	return client_end(client, url ? send_file(client, call, &err) : -1, &err);
}

int millibox_file_read(struct millibox_session *session, const char *path, char **ret_data,
                       size_t *ret_len)
{
	cleanup_buf struct buf data = BUF_INIT(READ_MAX);
	struct file_call call = {.download = true, .memory = &data};
	size_t len;

	if (!session)
		return -1;
	if (!ret_data)
		return client_missing(session->client, "ret_data");
	if (transfer(session, &call, path, "") < 0)
		return -1;
	*ret_data = buf_take(&data, &len);
	if (ret_len)
		*ret_len = len;
	return 0;
}

int millibox_file_write(struct millibox_session *session, const char *path, const void *data,
                        size_t len)
{
	/* Read only. */
	struct buf bytes = {.data = (char *)(uintptr_t)data, .len = len};
	struct file_call call = {.memory = &bytes};

	if (!session)
		return -1;
	if (!data && len > 0)
		return client_missing(session->client, "data");
	return transfer(session, &call, path, "");
}

int millibox_file_download(struct millibox_session *session, const char *path, int fd)
{
	struct file_call call = {.download = true, .fd = fd};

	if (!session)
		return -1;
	if (fd < 0)
		return client_missing(session->client, "fd");
	return transfer(session, &call, path, "");
}

int millibox_file_upload(struct millibox_session *session, const char *path, int fd, unsigned mode)
{
	struct file_call call = {.fd = fd};
	bool is_mode = mode <= MODE_MAX || mode == MILLIBOX_MODE_NONE;
	cleanup_free char *query = mode ? xasprintf("?mode=%04o", mode & MODE_MAX) : xstrdup("");

	if (!session)
		return -1;
	if (fd < 0 || !is_mode)
		return client_missing(session->client, fd < 0 ? "fd" : "mode");
	return transfer(session, &call, path, query);
}

int millibox_tree_download(struct millibox_session *session, const char *path, int fd)
{
	struct file_call call = {.download = true, .fd = fd};

	if (!session)
		return -1;
	if (fd < 0)
		return client_missing(session->client, "fd");
	return transfer(session, &call, path, "?format=tar");
}

int millibox_tree_upload(struct millibox_session *session, const char *path, int fd)
{
	struct file_call call = {.fd = fd};

	if (!session)
		return -1;
	if (fd < 0)
		return client_missing(session->client, "fd");
	return transfer(session, &call, path, "?format=tar");
}

int millibox_file_stat(struct millibox_session *session, const char *path, char **ret_json)
{
	struct error err = {0};
	cleanup_free char *url = NULL;

	if (!session)
		return -1;
	url = path ? api_file_path(session->id, path, "?stat=true", &err) : NULL;
	if (!url)
		return client_missing(session->client, "path");
	return client_answer(session->client, &(struct api_call){.method = "GET", .path = url},
	                     ret_json);
}

int millibox_file_remove(struct millibox_session *session, const char *path, int recursive)
{
	struct error err = {0};
	cleanup_free char *url = NULL;

	if (!session)
		return -1;
	url = path ? api_file_path(session->id, path, recursive ? "?recursive=true" : "", &err)
	           : NULL;
	if (!url)
		return client_missing(session->client, "path");
	return client_ask(session->client, &(struct api_call){.method = "DELETE", .path = url},
	                  NULL);
}

/* Takes @body; NULL: a path is NULL or not UTF-8. */
static int post_file(struct millibox_session *session, const char *verb, json_t *body)
{
	struct error err = {0};
	cleanup_free char *path = xasprintf("/api/v1/sessions/%s/files/%s", session->id, verb);
	cleanup_free char *text = body ? api_body(body, &err) : NULL;

	json_decref(body);
	if (!text)
		return client_missing(session->client, "path");
	return client_ask(session->client,
	                  &(struct api_call){.method = "POST", .path = path, .body = text}, NULL);
}

int millibox_file_mkdir(struct millibox_session *session, const char *path)
{
	if (!session)
		return -1;
	return post_file(session, "mkdir", path ? json_pack("{s:s}", "path", path) : NULL);
}

int millibox_file_move(struct millibox_session *session, const char *path, const char *to,
                       int replace)
{
	if (!session)
		return -1;
	return post_file(session, "move",
	                 path && to ? json_pack("{s:s, s:s, s:b}", "path", path, "to", to,
	                                        "replace", replace != 0)
	                            : NULL);
}

/* One page after the name @after, into @entries. *ret_next is owned; NULL: it was the last. */
static int add_page(struct millibox_session *session, const char *query, const char *after,
                    json_t *entries, char **ret_next)
{
	cleanup_free char *escaped = after ? api_escape(after) : NULL;
	cleanup_free char *path = xasprintf("/api/v1/sessions/%s/files%s%s%s", session->id, query,
	                                    escaped ? "&after=" : "", escaped ? escaped : "");
	const struct api_call call = {.method = "GET", .path = path};
	json_auto_t *answer = NULL;
	const char *next;

	if (client_ask(session->client, &call, &answer) < 0)
		return -1;
	if (json_array_extend(entries, json_object_get(answer, "files")) < 0)
		return client_fail(session->client, ERR_PROTOCOL,
		                   "the daemon's response has no files");
	next = json_string_value(json_object_get(answer, "next"));
	/* A tree has no order in which it could continue. */
	if (!next && json_is_true(json_object_get(answer, "truncated")))
		return client_fail(session->client, ERR_TOO_LARGE,
		                   "the tree has too many entries: list its directories");
	*ret_next = next ? xstrdup(next) : NULL;
	return 0;
}

int millibox_file_list(struct millibox_session *session, const char *path, int recursive,
                       struct millibox_list **ret_list)
{
	cleanup_free char *escaped = path ? api_escape(path) : NULL;
	cleanup_free char *query = NULL;
	cleanup_free char *after = NULL;
	json_auto_t *entries = json_array();

	if (!session)
		return -1;
	if (!escaped || !ret_list)
		return client_missing(session->client, path ? "ret_list" : "path");
	query = recursive ? xasprintf("?path=%s&recursive=true&limit=%d", escaped, TREE_MAX)
	                  : xasprintf("?path=%s&limit=%d", escaped, LIST_PAGE);
	do {
		char *next = NULL;

		if (add_page(session, query, after, entries, &next) < 0)
			return -1;
		free(after);
		after = next;
	} while (after);
	*ret_list = NEW(struct millibox_list);
	(*ret_list)->entries = TAKE_PTR(entries);
	return 0;
}

int millibox_file_page(struct millibox_session *session, const char *path, int recursive,
                       unsigned limit, const char *after, char **ret_json)
{
	cleanup_free char *escaped = path ? api_escape(path) : NULL;
	cleanup_free char *name = after ? api_escape(after) : NULL;
	cleanup_free char *url = NULL;

	if (!session)
		return -1;
	if (!escaped)
		return client_missing(session->client, "path");
	url = xasprintf("/api/v1/sessions/%s/files?path=%s&limit=%u%s%s%s", session->id, escaped,
	                limit ? limit : TREE_MAX, recursive ? "&recursive=true" : "",
	                name ? "&after=" : "", name ? name : "");
	return client_answer(session->client, &(struct api_call){.method = "GET", .path = url},
	                     ret_json);
}

void millibox_list_free(struct millibox_list *list)
{
	if (!list)
		return;
	json_decref(list->entries);
	free(list);
}

size_t millibox_list_count(const struct millibox_list *list)
{
	return list ? json_array_size(list->entries) : 0;
}

static const json_t *entry_member(const struct millibox_list *list, size_t index, const char *key)
{
	return list ? json_object_get(json_array_get(list->entries, index), key) : NULL;
}

const char *millibox_list_path(const struct millibox_list *list, size_t index)
{
	return json_string_value(entry_member(list, index, "path"));
}

const char *millibox_list_type(const struct millibox_list *list, size_t index)
{
	return json_string_value(entry_member(list, index, "type"));
}

uint64_t millibox_list_size(const struct millibox_list *list, size_t index)
{
	return (uint64_t)json_integer_value(entry_member(list, index, "size"));
}
