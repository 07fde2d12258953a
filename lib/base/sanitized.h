/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: SANITIZED says whether this is built with the address sanitizer, which asks more of the
 * kernel than the program does: for those who confine a program. Never in what is installed.
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
