/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"

int step_loopback(struct build *b attr_unused, struct error *err)
{
	cleanup_close int sock = fd_socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP};

	if (sock < 0)
		return error_set(err, ERR_BOX_FAILED, -sock, "socket for the loopback interface");
	if (ioctl(sock, SIOCSIFFLAGS, &req) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "loopback interface up");
	return 0;
}
