/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what node.c uses of Node-API and libuv. Both keep their binary interface for good, and the
 * process that loads the module provides the functions: no headers of Node.js are needed to build.
 * A Node-API function returns 0, or why it failed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct napi_env_ *napi_env;
typedef struct napi_value_ *napi_value;
typedef struct napi_ref_ *napi_ref;
typedef struct napi_scope_ *napi_handle_scope;
typedef struct napi_info_ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env env, napi_callback_info info);

int napi_get_cb_info(napi_env env, napi_callback_info info, size_t *argc, napi_value *argv,
                     napi_value *ret_this, void **ret_data);
int napi_throw_error(napi_env env, const char *code, const char *text);
int napi_get_value_int32(napi_env env, napi_value value, int32_t *ret);
int napi_get_value_bool(napi_env env, napi_value value, bool *ret);
int napi_get_value_string_utf8(napi_env env, napi_value value, char *text, size_t max,
                               size_t *ret_len);
int napi_get_buffer_info(napi_env env, napi_value value, void **ret_data, size_t *ret_len);
int napi_create_int32(napi_env env, int32_t value, napi_value *ret);
int napi_create_array_with_length(napi_env env, size_t len, napi_value *ret);
int napi_create_buffer_copy(napi_env env, size_t len, const void *data, void **ret_data,
                            napi_value *ret);
int napi_create_function(napi_env env, const char *name, size_t len, napi_callback function,
                         void *data, napi_value *ret);
int napi_set_element(napi_env env, napi_value list, uint32_t index, napi_value value);
int napi_set_named_property(napi_env env, napi_value object, const char *name, napi_value value);
int napi_create_reference(napi_env env, napi_value value, uint32_t count, napi_ref *ret);
int napi_get_reference_value(napi_env env, napi_ref ref, napi_value *ret);
int napi_get_global(napi_env env, napi_value *ret);
int napi_open_handle_scope(napi_env env, napi_handle_scope *ret);
int napi_close_handle_scope(napi_env env, napi_handle_scope scope);
int napi_make_callback(napi_env env, void *context, napi_value receiver, napi_value function,
                       size_t argc, const napi_value *argv, napi_value *ret);
int napi_get_and_clear_last_exception(napi_env env, napi_value *ret);

/** napi_register_module_v1 - ours: Node.js calls it when it loads the module. */
__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env,
                                                                          napi_value exports);

typedef struct uv_loop_ uv_loop_t;
typedef struct uv_poll_ uv_poll_t;
typedef struct uv_async_ uv_async_t;

enum uv_handle_type {
	UV_ASYNC = 1,
	UV_POLL = 8,
};

#define UV_READABLE 1

int napi_get_uv_event_loop(napi_env env, uv_loop_t **ret);
size_t uv_handle_size(enum uv_handle_type type);
int uv_poll_init(uv_loop_t *loop, uv_poll_t *handle, int fd);
int uv_poll_start(uv_poll_t *handle, int events,
                  void (*callback)(uv_poll_t *handle, int status, int events));
int uv_async_init(uv_loop_t *loop, uv_async_t *handle, void (*callback)(uv_async_t *handle));
int uv_async_send(uv_async_t *handle);
void uv_unref(void *handle);
