/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: compiler attributes and ownership macros. */

#include <assert.h>
#include <stddef.h>

#define attr_cleanup(fn)     __attribute__((cleanup(fn)))
#define attr_must_check      __attribute__((warn_unused_result))
#define attr_printf(fmt, va) __attribute__((format(printf, fmt, va)))
#define attr_noreturn        __attribute__((noreturn))
#define attr_unused          __attribute__((unused))
#define attr_not_null        __attribute__((returns_nonnull))

/* gcc 11 and later check that @fn frees what a constructor returned. */
#if defined(__GNUC__) && !defined(__clang__)
#define attr_owned(fn) __attribute__((malloc, malloc(fn, 1)))
#else
#define attr_owned(fn) __attribute__((malloc))
#endif

/* Move ownership out of a variable with a cleanup. Evaluates @var once, so fds[n++] works. */
#define TAKE(var, empty)                                                                           \
	({                                                                                         \
		__auto_type place_ = &(var);                                                       \
		__auto_type taken_ = *place_;                                                      \
		*place_ = (empty);                                                                 \
		taken_;                                                                            \
	})
#define TAKE_PTR(p) TAKE(p, NULL)
#define TAKE_FD(fd) TAKE(fd, -1)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))
