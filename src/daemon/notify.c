/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/notify.h"

#include "base/fd.h"
#include "base/log.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int notify_open(const char *name, int *ret_sock, struct error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	size_t len = name ? strlen(name) : 0;
	cleanup_close int sock = -1;

	*ret_sock = -1;
	if (len == 0)
		return 0;
	if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof(addr.sun_path))
		return error_set(err, ERR_CONFIG, 0,
		                 "NOTIFY_SOCKET: must be an absolute path, or @ and a name");
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	sock = fd_socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return error_set(err, ERR_SYSTEM, -sock, "NOTIFY_SOCKET: create a socket");
	/* An abstract name has no terminator; a path may have one. */
	if (connect(sock, (const struct sockaddr *)&addr,
	            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
		return error_set(err, ERR_CONFIG, errno, "NOTIFY_SOCKET: connect to %.100s", name);
	*ret_sock = TAKE_FD(sock);
	return 0;
}

void notify_send(int sock, const char *state)
{
	if (sock >= 0 && send(sock, state, strlen(state), MSG_NOSIGNAL) < 0)
		log_warn("tell the service manager %s: %s", state, strerror(errno));
}
