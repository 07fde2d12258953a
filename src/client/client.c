/* SPDX-License-Identifier: Apache-2.0 */
#include "client/handle.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "http/client.h"
#include "http/status.h"
#include "json/json_dump.h"

#define TIMEOUT_US  (60 * USEC_PER_SEC)
#define PATIENCE_US (60 * USEC_PER_SEC)
#define BUSY_US     (300 * USEC_PER_SEC)

const char *millibox_version(void)
{
	return MILLIBOX_VERSION;
}

void millibox_free(void *memory)
{
	free(memory);
}

/* Never 0, which means none, nor another place of stdio that the program has closed. */
static int make_event(void)
{
	cleanup_close int fd = fd_eventfd();

	if (fd < 0 || fd > STDERR_FILENO)
		return TAKE_FD(fd);
	return fd_dup(fd);
}

struct millibox_client *millibox_client_new(void)
{
	struct millibox_client *client = NEW(struct millibox_client);

	client->timeout_us = TIMEOUT_US;
	client->patience_us = PATIENCE_US;
	client->busy_us = BUSY_US;
	client->cancel_fd = client->event_fd = make_event();
	return client;
}

static void forget_error(struct millibox_client *client)
{
	error_clear(&client->error);
	json_decref(client->problem);
	free(client->problem_text);
	client->problem = NULL;
	client->problem_text = NULL;
	client->status = 0;
	json_decref(client->answer);
	free(client->answer_text);
	client->answer = NULL;
	client->answer_text = NULL;
}

/* Another daemon, or the same one with another key. */
static void forget_endpoint(struct millibox_client *client)
{
	endpoint_done(&client->endpoint);
	http_client_free(client->kept);
	client->kept = NULL;
}

void millibox_client_free(struct millibox_client *client)
{
	if (!client)
		return;
	forget_error(client);
	forget_endpoint(client);
	if (client->cancel_fd != client->event_fd)
		(void)fd_close(client->cancel_fd);
	(void)fd_close(client->event_fd);
	free(client->address);
	free(client->socket);
	free(client->url);
	free(client->key);
	free(client->ca_file);
	free(client);
}

int client_seconds(double seconds, uint64_t *ret_us)
{
	/* A year, and no NaN. */
	if (!(seconds >= 0 && seconds <= 366 * 86400.0))
		return -EINVAL;
	*ret_us = (uint64_t)(seconds * USEC_PER_SEC);
	return 0;
}

static int set_text(struct millibox_client *client, char **place, const char *text,
                    const char *name)
{
	if (!text)
		return client_missing(client, name);
	forget_error(client);
	if (client->running)
		return error_set(&client->error, ERR_CONFLICT, 0,
		                 "the daemon cannot be changed in a callback");
	forget_endpoint(client);
	free(*place);
	*place = xstrdup(text);
	return 0;
}

int millibox_set_socket(struct millibox_client *client, const char *path)
{
	return client ? set_text(client, &client->socket, path, "path") : -1;
}

int millibox_set_url(struct millibox_client *client, const char *url)
{
	return client ? set_text(client, &client->url, url, "url") : -1;
}

int millibox_set_key(struct millibox_client *client, const char *key)
{
	return client ? set_text(client, &client->key, key, "key") : -1;
}

int millibox_set_ca_file(struct millibox_client *client, const char *path)
{
	return client ? set_text(client, &client->ca_file, path, "path") : -1;
}

static int set_seconds(struct millibox_client *client, uint64_t *place_us, double seconds)
{
	if (client_seconds(seconds, place_us) < 0)
		return client_missing(client, "seconds");
	forget_error(client);
	return 0;
}

int millibox_set_timeout(struct millibox_client *client, double seconds)
{
	return client ? set_seconds(client, &client->timeout_us, seconds) : -1;
}

int millibox_set_busy_timeout(struct millibox_client *client, double seconds)
{
	return client ? set_seconds(client, &client->busy_us, seconds) : -1;
}

int millibox_set_reattach(struct millibox_client *client, double seconds)
{
	return client ? set_seconds(client, &client->patience_us, seconds) : -1;
}

void millibox_cancel(struct millibox_client *client)
{
	static const uint64_t one = 1;
	int saved = errno;

	/* Full: it is cancelled already. */
	if (client)
		(void)!write(client->event_fd, &one, sizeof(one));
	errno = saved;
}

int client_missing(struct millibox_client *client, const char *name)
{
	if (!client)
		return -1;
	forget_error(client);
	return error_field(&client->error, name, "the argument '%s' is NULL or invalid", name);
}

int client_fail(struct millibox_client *client, enum error_code code, const char *message)
{
	forget_error(client);
	return error_set(&client->error, code, 0, "%s", message);
}

static struct endpoint_options client_options(const struct millibox_client *client)
{
	return (struct endpoint_options){.socket = client->socket,
	                                 .url = client->url,
	                                 .ca_file = client->ca_file,
	                                 .key = client->key,
	                                 .words = client->words};
}

static int choose_endpoint(struct millibox_client *client, struct error *err)
{
	const struct endpoint_options options = client_options(client);

	if (client->kept)
		return 0;
	if (client->event_fd < 0)
		return error_set(err, ERR_SYSTEM, -client->event_fd, "create an event descriptor");
	if (!client->endpoint.url && api_endpoint(&options, &client->endpoint, err) < 0) {
		endpoint_done(&client->endpoint);
		return -1;
	}
	client->kept = client->endpoint.kept = http_client_new();
	return client->kept ? 0 : error_set(err, ERR_SYSTEM, ENOMEM, "start libcurl");
}

int client_begin(struct millibox_client *client)
{
	struct error err = {0};

	if (!client)
		return -1;
	forget_error(client);
	client->running++;
	return choose_endpoint(client, &err) < 0 ? client_end(client, -1, &err) : 0;
}

int client_end(struct millibox_client *client, int r, const struct error *err)
{
	uint64_t count;

	/* What came too late for this call is not for the next one. */
	if (--client->running == 0 && client->event_fd >= 0)
		(void)!read(client->event_fd, &count, sizeof(count));
	if (r >= 0)
		return r;
	client->error = *err;
	if (err->code == ERR_TIMEOUT && err->sys == 0 && !client->problem)
		client->error.sys = ETIMEDOUT;
	return r;
}

/* A code of a later daemon has no name here: its text is in the object. */
static enum error_code find_code(const char *text)
{
	for (int code = ERR_NONE + 1; text && code < ERR_COUNT; code++)
		if (str_equal(text, error_text(code)))
			return code;
	return ERR_SYSTEM;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

int client_refuse(struct millibox_client *client, int status, json_t *problem, struct error *err)
{
	const char *detail = text_of(problem, "error_detail");

	forget_error(client);
	client->problem = problem;
	client->problem_text = json_dump_text(problem, 0);
	client->status = status;
	(void)error_set(err, find_code(text_of(problem, "error_code")), 0, "%s",
	                *detail ? detail : text_of(problem, "description"));
	(void)!str_copy(err->field, sizeof(err->field), text_of(problem, "field"));
	return -1;
}

void client_keep(struct millibox_client *client, json_t *answer)
{
	json_decref(client->answer);
	client->answer = answer;
}

struct retry client_retry(const struct millibox_client *client)
{
	return (struct retry){.until_us = clock_us() + client->busy_us,
	                      .cancel_fd = client->cancel_fd,
	                      .on_busy = client->on_busy};
}

/* One attempt. Return: as of retry_refused; 0 with *ret_answer, or NULL and *err. */
static int try_send(struct millibox_client *client, const struct api_call *call,
                    struct retry *retry, json_t **ret_answer, int *ret_status, struct error *err)
{
	int again;

	*ret_answer = NULL;
	if (api_call(&client->endpoint, call, ret_answer, ret_status, err) < 0)
		return retry_unreached(retry, err);
	if (*ret_status < HTTP_BAD_REQUEST)
		return 0;
	again = retry_refused(retry, *ret_answer, err);
	if (again != 0)
		json_decref(TAKE_PTR(*ret_answer));
	return again;
}

int client_send(struct millibox_client *client, const struct api_call *call, json_t **ret_answer,
                struct error *err)
{
	struct api_call sent = *call;
	struct retry retry = client_retry(client);
	json_t *answer = NULL;
	int status = 0;

	sent.timeout_us = client->timeout_us;
	sent.cancel_fd = client->cancel_fd;
	while (try_send(client, &sent, &retry, &answer, &status, err) > 0)
		;
	if (!answer)
		return -1;
	if (status >= HTTP_BAD_REQUEST)
		return client_refuse(client, status, answer, err);
	if (ret_answer)
		*ret_answer = json_incref(answer);
	client_keep(client, answer);
	return 0;
}

int client_ask(struct millibox_client *client, const struct api_call *call, json_t **ret_answer)
{
	struct error err = {0};

	if (client_begin(client) < 0)
		return -1;
	return client_end(client, client_send(client, call, ret_answer, &err), &err);
}

int client_answer(struct millibox_client *client, const struct api_call *call, char **ret_json)
{
	json_auto_t *answer = NULL;

	if (client_ask(client, call, &answer) < 0)
		return -1;
	if (ret_json)
		*ret_json = json_dump_text(answer, 0);
	return 0;
}

int millibox_call(struct millibox_client *client, const char *method, const char *path,
                  const char *body, char **ret_json)
{
	const struct api_call call = {.method = method, .path = path, .body = body};

	if (!method || !path || path[0] != '/')
		return client_missing(client, method ? "path" : "method");
	return client_answer(client, &call, ret_json);
}

char *millibox_escape(const char *text)
{
	return text ? api_escape(text) : NULL;
}

static void on_tick(void *ctx, uint64_t sent)
{
	const struct millibox_client *client = ctx;

	client->on_progress(client->progress_ctx, sent);
}

int millibox_send(struct millibox_client *client, const char *method, const char *path,
                  const void *data, size_t len, char **ret_json)
{
	const struct api_call call = {.method = method,
	                              .path = path,
	                              .body = len ? data : "",
	                              .body_len = len,
	                              .on_tick = client && client->on_progress ? on_tick : NULL,
	                              .ctx = client};

	if (!method || !path || path[0] != '/')
		return client_missing(client, method ? "path" : "method");
	if (!data && len > 0)
		return client_missing(client, "data");
	return client_answer(client, &call, ret_json);
}

const char *millibox_answer(struct millibox_client *client)
{
	if (!client || !client->answer)
		return NULL;
	if (!client->answer_text)
		client->answer_text = json_dump_text(client->answer, 0);
	return client->answer_text;
}

int millibox_set_progress(struct millibox_client *client, millibox_progress_fn *fn, void *ctx)
{
	if (!client)
		return -1;
	forget_error(client);
	client->on_progress = fn;
	client->progress_ctx = ctx;
	return 0;
}

void client_progress(void *ctx, size_t bytes)
{
	struct millibox_client *client = ctx;

	client->progress_bytes += bytes;
	if (client->on_progress)
		client->on_progress(client->progress_ctx, client->progress_bytes);
}

/* Calls poll one descriptor: an epoll is readable when one of its two is. */
static int join_events(int event_fd, int fd)
{
	struct epoll_event readable = {.events = EPOLLIN};
	cleanup_close int joined = fd_epoll();

	if (joined < 0)
		return joined;
	if (epoll_ctl(joined, EPOLL_CTL_ADD, event_fd, &readable) < 0 ||
	    epoll_ctl(joined, EPOLL_CTL_ADD, fd, &readable) < 0)
		return -errno;
	/* 0 would mean none. */
	return joined > STDERR_FILENO ? TAKE_FD(joined) : fd_dup(joined);
}

int millibox_cancel_on(struct millibox_client *client, int fd)
{
	int joined;

	if (!client)
		return -1;
	forget_error(client);
	joined = fd < 0 ? client->event_fd : join_events(client->event_fd, fd);
	if (joined < 0)
		return error_set(&client->error, ERR_SYSTEM, -joined, "watch the descriptor");
	if (client->cancel_fd != client->event_fd)
		(void)fd_close(client->cancel_fd);
	client->cancel_fd = joined;
	return 0;
}

int millibox_find(struct millibox_client *client, const char **ret_address)
{
	struct endpoint_options options;
	struct error err = {0};
	int found = 1;

	if (!client)
		return -1;
	forget_error(client);
	options = client_options(client);
	if (!client->endpoint.url) {
		if (endpoint_find(&options, &client->endpoint, &err) < 0) {
			client->error = err;
			return -1;
		}
		found = client->endpoint.chosen || endpoint_is_served(&client->endpoint);
	}
	free(client->address);
	client->address =
		xstrdup(client->endpoint.socket ? client->endpoint.socket : client->endpoint.url);
	/* One may be started before the next call. */
	if (!found)
		forget_endpoint(client);
	if (ret_address)
		*ret_address = client->address;
	return found;
}

int millibox_ready(struct millibox_client *client)
{
	struct error err = {0};
	int status = 0;

	if (client_begin(client) < 0)
		return -1;
	if (client_end(client, api_ready(&client->endpoint, client->timeout_us, &status, &err),
	               &err) < 0)
		return -1;
	return status == HTTP_OK;
}

const char *millibox_error_code(const struct millibox_client *client)
{
	const char *text;

	if (!client)
		return error_text(ERR_INVALID);
	text = text_of(client->problem, "error_code");
	if (*text)
		return text;
	return error_is_set(&client->error) ? error_text(client->error.code) : "";
}

const char *millibox_error_message(const struct millibox_client *client)
{
	const char *detail =
		client ? text_of(client->problem, "error_detail") : "the client is NULL";

	return *detail ? detail : client->error.msg;
}

const char *millibox_error_field(const struct millibox_client *client)
{
	return client ? client->error.field : "client";
}

int millibox_error_status(const struct millibox_client *client)
{
	return client ? client->status : 0;
}

int millibox_error_errno(const struct millibox_client *client)
{
	return client ? client->error.sys : EINVAL;
}

const char *millibox_error_json(const struct millibox_client *client)
{
	return client ? client->problem_text : NULL;
}
