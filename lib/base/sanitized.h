/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: SANITIZED: built with the address sanitizer, which needs more system calls and memory, so
 * confinement allows them. Never set in an installed build.
 */

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif
