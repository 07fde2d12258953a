/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: files in /etc that every box has. */

#define ETC_PASSWD                                                                                 \
	"root:x:0:0:root:/:/usr/sbin/nologin\n"                                                    \
	"user:x:1000:1000:user:/workspace:/bin/sh\n"                                               \
	"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
#define ETC_GROUP    "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"
#define ETC_HOSTS    "127.0.0.1 localhost millibox\n::1 localhost millibox\n"
#define ETC_HOSTNAME "millibox\n"
