/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: libmillibox runs untrusted code in isolated boxes of a Millibox daemon: one program in a
 * fresh box, or many in a session that keeps variables, files and processes. C99, and C++.
 *
 * Results. A function that can fail returns 0, or -1 with an error that the millibox_error_*
 * functions read from the client until its next call. A program that fails is a result, not an
 * error. What a function stores in a ret_ argument is stored on success only.
 *
 * Memory. What has a _free function belongs to the caller, who frees it with that function; every
 * _free function accepts NULL. Text and bytes that an accessor returns belong to the handle and are
 * valid until it is freed; text is UTF-8 with a final NUL. The library copies what it is given.
 * Free sessions before their client. NULL where it is not allowed is an error
 * (Sandbox.InvalidParameter), not a crash; a NULL handle
 * is -1. If memory is out, the library aborts the process.
 *
 * Threads. A client and all handles made with it belong to one thread at a time; threads that work
 * in parallel have a client each. Only millibox_cancel may be called from elsewhere. The library
 * starts no thread and installs no signal handler. With an https URL, ignore SIGPIPE.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct millibox_client;
struct millibox_request;
struct millibox_result;
struct millibox_session;
struct millibox_list;

/* Client */

/** millibox_version - of the library, such as "0.1.0". */
const char *millibox_version(void);
/**
 * millibox_client_new - a client of the daemon that the environment names: MILLIBOX_SOCKET, else
 * MILLIBOX_URL, else the socket of the user's or the system's daemon; MILLIBOX_API_KEY or
 * MILLIBOX_API_KEY_FILE; MILLIBOX_CA_FILE. It connects with the first call and keeps the
 * connection.
 */
struct millibox_client *millibox_client_new(void);
/** millibox_client_free - close the connection. Sessions continue. */
void millibox_client_free(struct millibox_client *client);
/** millibox_set_socket - path of the daemon's Unix socket, instead of the environment's. */
int millibox_set_socket(struct millibox_client *client, const char *path);
/** millibox_set_url - such as "http://127.0.0.1:8000", instead of a socket. */
int millibox_set_url(struct millibox_client *client, const char *url);
/** millibox_set_key - API key, instead of the environment's. */
int millibox_set_key(struct millibox_client *client, const char *key);
/** millibox_set_ca_file - authorities for https. */
int millibox_set_ca_file(struct millibox_client *client, const char *path);
/**
 * millibox_set_timeout - seconds after which a call that waits for no program fails; 0: never.
 * Default: 60. See millibox_request_deadline for programs. Uploads and downloads have none. It does
 * not include the wait for a turn.
 */
int millibox_set_timeout(struct millibox_client *client, double seconds);
/**
 * millibox_set_busy_timeout - seconds for which a call waits for its turn: a daemon that is busy
 * refuses requests before it begins anything, and they are sent again when it says. 0: not.
 * Default: 300.
 */
int millibox_set_busy_timeout(struct millibox_client *client, double seconds);
/**
 * millibox_set_reattach - seconds for which the broken stream of a session's program is tried
 * again; nothing of it is lost or repeated. A daemon that restarts keeps sessions. 0: not.
 * Default: 60.
 */
int millibox_set_reattach(struct millibox_client *client, double seconds);
/**
 * millibox_cancel - stop the call that runs, or else the next one: it fails with ECANCELED, and its
 * program is killed. May be called by any thread and by signal handlers.
 */
void millibox_cancel(struct millibox_client *client);
/**
 * millibox_cancel_on - calls also stop while @fd is readable, as with millibox_cancel: a signalfd,
 * an eventfd, a pipe. It is not read and stays the caller's. -1: none, the default.
 */
int millibox_cancel_on(struct millibox_client *client, int fd);
/** millibox_progress_fn - @bytes of the file or body were sent or received so far. */
typedef void millibox_progress_fn(void *ctx, uint64_t bytes);
/**
 * millibox_set_progress - @fn follows uploads, downloads and the body of millibox_send; about four
 * times a second while the daemon works on it. NULL: none.
 */
int millibox_set_progress(struct millibox_client *client, millibox_progress_fn *fn, void *ctx);
/**
 * millibox_find - find the daemon now, not with the first call. @ret_address, which may be NULL:
 * path of its socket, or URL, valid until the next call. Return: 1: the caller or the environment
 * has named it, or it listens at a default socket; 0: none listens there; -1: an error.
 */
int millibox_find(struct millibox_client *client, const char **ret_address);
/** millibox_ready - Return: 1: the daemon is ready; 0: it starts or stops; -1: it does not answer.
 */
int millibox_ready(struct millibox_client *client);
/**
 * millibox_call - any other request of the API: JSON in, JSON out. @path begins with "/api/v1/";
 * @body is JSON or NULL; @ret_json, to be freed with millibox_free, may be NULL.
 */
int millibox_call(struct millibox_client *client, const char *method, const char *path,
                  const char *body, char **ret_json);
/** millibox_escape - @text for the query of a path, to be freed with millibox_free. */
char *millibox_escape(const char *text);
/** millibox_send - millibox_call with a body of any bytes, such as an archive. */
int millibox_send(struct millibox_client *client, const char *method, const char *path,
                  const void *data, size_t len, char **ret_json);
/**
 * millibox_answer - the JSON object with which the daemon answered the last call, until the next
 * one; NULL: none, as of a program or a download.
 */
const char *millibox_answer(struct millibox_client *client);
/** millibox_free - free what a function allocated for the caller. */
void millibox_free(void *memory);

/* Errors of the last call */

/** millibox_error_code - such as "Sandbox.SessionNotFound"; "": the call succeeded. */
const char *millibox_error_code(const struct millibox_client *client);
/** millibox_error_message - for people; "": no error. */
const char *millibox_error_message(const struct millibox_client *client);
/** millibox_error_field - of the request, such as "resources.memory"; "": none. */
const char *millibox_error_field(const struct millibox_client *client);
/** millibox_error_status - HTTP status of the daemon's refusal; 0: it did not answer. */
int millibox_error_status(const struct millibox_client *client);
/** millibox_error_errno - ECANCELED, ETIMEDOUT, ECONNREFUSED ...; 0: none. */
int millibox_error_errno(const struct millibox_client *client);
/** millibox_error_json - the daemon's error object; NULL: it did not answer. */
const char *millibox_error_json(const struct millibox_client *client);

/* Requests: what to run and how, or what a session has */

/**
 * millibox_request_new - with this code; NULL: none yet. Fields have the names of the API's
 * (ExecuteRequest and SessionRequest in docs/api/openapi.yaml), with a dot before a member:
 * "language", "timeout", "resources.memory", "network", "template_id". A request can be used many
 * times. The first error of a function below is also the error of the call that uses the request.
 */
struct millibox_request *millibox_request_new(const char *code);
/** millibox_request_free - of a request that no call uses. */
void millibox_request_free(struct millibox_request *request);
/** millibox_request_set - a field that is text, such as "language" or "resources.memory". */
int millibox_request_set(struct millibox_request *request, const char *field, const char *text);
/** millibox_request_set_number - such as "timeout" in seconds, "resources.cpu" in cores. */
int millibox_request_set_number(struct millibox_request *request, const char *field, double value);
/** millibox_request_set_bytes - "stdin", or "code" that is not terminated by a NUL. */
int millibox_request_set_bytes(struct millibox_request *request, const char *field,
                               const void *data, size_t len);
/** millibox_request_set_json - any JSON value, such as the "event" of a handler. */
int millibox_request_set_json(struct millibox_request *request, const char *field,
                              const char *json);
/** millibox_request_add - to a list: "args", "packages", "secrets", "mcp". */
int millibox_request_add(struct millibox_request *request, const char *field, const char *text);
/** millibox_request_put - under a name: "env_vars". */
int millibox_request_put(struct millibox_request *request, const char *field, const char *name,
                         const char *text);
/** millibox_request_put_bytes - under a name: "files". */
int millibox_request_put_bytes(struct millibox_request *request, const char *field,
                               const char *name, const void *data, size_t len);
/**
 * millibox_request_deadline - seconds after which the call gives up and kills the program; 0:
 * never, the default. The field "timeout" is the daemon's limit, which ends the program with a
 * result.
 */
int millibox_request_deadline(struct millibox_request *request, double seconds);

/** millibox_stream - where a program writes. */
enum millibox_stream {
	MILLIBOX_STDOUT = 1,
	MILLIBOX_STDERR = 2
};

/** millibox_output_fn - bytes of @stream as they come. Return: 0, or 1 to kill the program. */
typedef int millibox_output_fn(void *ctx, enum millibox_stream stream, const char *data,
                               size_t len);
/** millibox_text_fn - one text. Return: 0, or 1 to kill the program. */
typedef int millibox_text_fn(void *ctx, const char *text);

/** millibox_request_on_output - @fn gets output while the program runs; NULL: none. */
int millibox_request_on_output(struct millibox_request *request, millibox_output_fn *fn, void *ctx);
/** millibox_request_on_start - @fn gets the id of the execution. */
int millibox_request_on_start(struct millibox_request *request, millibox_text_fn *fn, void *ctx);
/**
 * millibox_request_on_value - @fn gets each value or figure: a JSON object of media types and
 * contents, base64 for images.
 */
int millibox_request_on_value(struct millibox_request *request, millibox_text_fn *fn, void *ctx);
/** millibox_request_on_install - @fn gets what a package manager prints, as MILLIBOX_STDERR. */
int millibox_request_on_install(struct millibox_request *request, millibox_output_fn *fn,
                                void *ctx);
/** millibox_request_json - the fields as JSON, valid until the request is changed or freed. */
const char *millibox_request_json(struct millibox_request *request);

/* Programs and their results */

/**
 * millibox_run - run the request in a new box and wait for the end of the program. Without the
 * field "language" it is detected from the code; Python where that is not certain.
 */
int millibox_run(struct millibox_client *client, const struct millibox_request *request,
                 struct millibox_result **ret_result);
/** millibox_result_free - with all that its accessors returned. */
void millibox_result_free(struct millibox_result *result);
/** millibox_result_ok - 1: the program succeeded; 0: it did not. */
int millibox_result_ok(const struct millibox_result *result);
/** millibox_result_status - "success", "failed", "timeout", "crashed" or "cancelled". */
const char *millibox_result_status(const struct millibox_result *result);
/** millibox_result_exit_code - 128 and the signal's number if one ended it; -1: none. */
int millibox_result_exit_code(const struct millibox_result *result);
/** millibox_result_execution_id - of the execution, for millibox_call. */
const char *millibox_result_execution_id(const struct millibox_result *result);
/**
 * millibox_result_stdout - what the program printed, up to the limit. @ret_len may be NULL. Invalid
 * UTF-8 is replaced; millibox_request_on_output gets unchanged bytes.
 */
const char *millibox_result_stdout(const struct millibox_result *result, size_t *ret_len);
/** millibox_result_stderr - as millibox_result_stdout. */
const char *millibox_result_stderr(const struct millibox_result *result, size_t *ret_len);
/** millibox_result_text - the value of the last expression; without one, stdout. */
const char *millibox_result_text(const struct millibox_result *result);
/** millibox_result_value - value of the last expression or of a handler, JSON; NULL: none. */
const char *millibox_result_value(const struct millibox_result *result);
/**
 * millibox_result_data - the last value that has @media_type: "image/png", "text/html",
 * "application/json" ... Images are decoded. Return: NULL: none; @ret_len may be NULL.
 */
const void *millibox_result_data(const struct millibox_result *result, const char *media_type,
                                 size_t *ret_len);
/** millibox_result_error - like "ZeroDivisionError: division by zero"; NULL: no exception. */
const char *millibox_result_error(const struct millibox_result *result);
/** millibox_result_limit - which one ended it or cut its output: "time", "memory"; NULL: none. */
const char *millibox_result_limit(const struct millibox_result *result);
/** millibox_result_denials - how many kinds of things the box refused. */
size_t millibox_result_denials(const struct millibox_result *result);
/** millibox_result_denial - one of them as JSON, with its remedy; NULL: no such one. */
const char *millibox_result_denial(const struct millibox_result *result, size_t index);
/** millibox_result_warning - what was granted otherwise than requested; NULL: no such one. */
const char *millibox_result_warning(const struct millibox_result *result, size_t index);
/** millibox_result_field - a member of the daemon's object as JSON; NULL: no such one, or null. */
const char *millibox_result_field(const struct millibox_result *result, const char *name);
/** millibox_result_json - the daemon's whole object. */
const char *millibox_result_json(const struct millibox_result *result);

/* Sessions */

/**
 * millibox_session_create - a session with the fields of the request; NULL: with defaults. It is
 * persistent unless the field "mode" says otherwise.
 */
int millibox_session_create(struct millibox_client *client, const struct millibox_request *request,
                            struct millibox_session **ret_session);
/** millibox_session_attach - a handle of a session that exists. */
int millibox_session_attach(struct millibox_client *client, const char *id,
                            struct millibox_session **ret_session);
/** millibox_session_open - as millibox_session_attach, without asking whether it exists. */
int millibox_session_open(struct millibox_client *client, const char *id,
                          struct millibox_session **ret_session);
/**
 * millibox_session_list - sessions, the newest first: a JSON object with the list "sessions".
 * @state, such as "ready": only those; NULL: all. @limit up to 200; 0: the daemon's default.
 */
int millibox_session_list(struct millibox_client *client, const char *state, unsigned limit,
                          char **ret_json);
/** millibox_session_free - only the handle: see millibox_session_delete. */
void millibox_session_free(struct millibox_session *session);
/** millibox_session_id - for millibox_session_attach. */
const char *millibox_session_id(const struct millibox_session *session);
/**
 * millibox_session_warning - what was granted otherwise than requested, or ignored, when the
 * session was created; NULL: no such one.
 */
const char *millibox_session_warning(const struct millibox_session *session, size_t index);
/** millibox_session_info - the session as the daemon has it; free with millibox_free. */
int millibox_session_info(struct millibox_session *session, char **ret_json);
/**
 * millibox_session_run - run the request in the session and wait for the end of the program.
 * Variables stay for the next one.
 */
int millibox_session_run(struct millibox_session *session, const struct millibox_request *request,
                         struct millibox_result **ret_result);
/**
 * millibox_session_start - as millibox_session_run without waiting, for requests with the field
 * "background" (beside the queue) or "tty". Free @ret_id, of the execution, with millibox_free; see
 * millibox_follow.
 */
int millibox_session_start(struct millibox_session *session, const struct millibox_request *request,
                           char **ret_id);
/**
 * millibox_session_interrupt - interrupt the running program, as Ctrl-C would. For another thread
 * and its client: the one that runs the program waits.
 */
int millibox_session_interrupt(struct millibox_session *session);
/**
 * millibox_session_install - install packages into the session: fields "packages" or "lock", and
 * "language", by default the session's (SessionPackagesRequest). Programs find them at once, also
 * those that run. @ret_json, what was installed, is freed with millibox_free and may be NULL.
 */
int millibox_session_install(struct millibox_session *session,
                             const struct millibox_request *request, char **ret_json);
/** millibox_session_pause - freeze it: nothing runs, and time limits stand still. */
int millibox_session_pause(struct millibox_session *session);
/** millibox_session_resume - let a paused session continue. */
int millibox_session_resume(struct millibox_session *session);
/** millibox_session_restart - kill every program and forget variables; files stay. */
int millibox_session_restart(struct millibox_session *session);
/** millibox_session_terminate - end it; its executions stay readable. */
int millibox_session_terminate(struct millibox_session *session);
/** millibox_session_delete - end it and delete its files and executions. */
int millibox_session_delete(struct millibox_session *session);

/* Executions: programs of sessions by their ids */

/**
 * millibox_follow - hand output and values of an execution to the callbacks of @request, from the
 * beginning: until it ends, or with @wait 0 what there is. *@ret_result, which may be NULL, is NULL
 * if it has not ended. Cancelling ends the call, not the program.
 */
int millibox_follow(struct millibox_client *client, const char *execution_id,
                    const struct millibox_request *request, int wait,
                    struct millibox_result **ret_result);
/**
 * millibox_execution_info - the execution as the daemon has it. @ret_json, here and below, may be
 * NULL: see millibox_answer.
 */
int millibox_execution_info(struct millibox_client *client, const char *execution_id,
                            char **ret_json);
/** millibox_execution_cancel - kill its program; the session continues. */
int millibox_execution_cancel(struct millibox_client *client, const char *execution_id);
/**
 * millibox_execution_list - of a session, the newest first: a JSON object with the list
 * "executions". @status, such as "running": only those; NULL: all. @limit as of
 * millibox_session_list.
 */
int millibox_execution_list(struct millibox_session *session, const char *status, unsigned limit,
                            char **ret_json);
/**
 * millibox_install - install packages ahead of their use: fields "packages", "language", "manager"
 * (PackagesRequest). @ret_json, their layer, is freed with millibox_free and may be NULL.
 */
int millibox_install(struct millibox_client *client, const struct millibox_request *request,
                     char **ret_json);

/* Files of a session, by their paths from its workspace */

/**
 * millibox_file_read - a file of up to 256 MiB; free @ret_data with millibox_free. A NUL follows
 * the bytes. @ret_len may be NULL.
 */
int millibox_file_read(struct millibox_session *session, const char *path, char **ret_data,
                       size_t *ret_len);
/** millibox_file_write - replace a file at once when all is there; create its directories. */
int millibox_file_write(struct millibox_session *session, const char *path, const void *data,
                        size_t len);
/** millibox_file_download - write the file to @fd, of any size. */
int millibox_file_download(struct millibox_session *session, const char *path, int fd);
/** MILLIBOX_MODE_NONE - @mode of a file without any permission. */
#define MILLIBOX_MODE_NONE 010000U
/** millibox_file_upload - a file of what @fd has up to its end. @mode like 0755; 0: 0644. */
int millibox_file_upload(struct millibox_session *session, const char *path, int fd, unsigned mode);
/** millibox_tree_download - write a directory to @fd as a tar archive; "": the workspace. */
int millibox_tree_download(struct millibox_session *session, const char *path, int fd);
/** millibox_tree_upload - extract the tar archive that @fd has into a directory. */
int millibox_tree_upload(struct millibox_session *session, const char *path, int fd);
/** millibox_file_stat - type, mode, size and time as JSON; free with millibox_free. */
int millibox_file_stat(struct millibox_session *session, const char *path, char **ret_json);
/** millibox_file_remove - a file; @recursive 1: or a directory with its content. */
int millibox_file_remove(struct millibox_session *session, const char *path, int recursive);
/** millibox_file_mkdir - create a directory, and those above it. */
int millibox_file_mkdir(struct millibox_session *session, const char *path);
/** millibox_file_move - a file or directory; @replace 1: replace what is at @to. */
int millibox_file_move(struct millibox_session *session, const char *path, const char *to,
                       int replace);
/**
 * millibox_file_list - entries of a directory, "" for the workspace; @recursive 1: of the tree
 * below it, at most 10,000.
 */
int millibox_file_list(struct millibox_session *session, const char *path, int recursive,
                       struct millibox_list **ret_list);
/**
 * millibox_file_page - one page of a directory or tree as a JSON object with the list "files":
 * types, modes, sizes, times. @limit up to 10,000; 0: that. @after: names after this one; NULL:
 * from the first.
 */
int millibox_file_page(struct millibox_session *session, const char *path, int recursive,
                       unsigned limit, const char *after, char **ret_json);
/** millibox_list_free - with its entries. */
void millibox_list_free(struct millibox_list *list);
/** millibox_list_count - entries of the list. */
size_t millibox_list_count(const struct millibox_list *list);
/** millibox_list_path - from the workspace; NULL: no such entry. */
const char *millibox_list_path(const struct millibox_list *list, size_t index);
/** millibox_list_type - "file", "directory", "symlink" ...; NULL: no such entry. */
const char *millibox_list_type(const struct millibox_list *list, size_t index);
/** millibox_list_size - bytes. */
uint64_t millibox_list_size(const struct millibox_list *list, size_t index);

#ifdef __cplusplus
}
#endif
