/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include "base/fd.h"
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Connections that wait for millibox-gateway. */
#define GATEWAY_BACKLOG 128
#define GATEWAY_UMASK   0111 /* a socket with mode 0666 */

/*
 * One socket, two processes: the engine makes it and passes a copy to the daemon, the child names
 * it in its own mount namespace and listens. What connects there is this box, whatever it says.
 */
int step_gateway(struct build *b, struct error *err)
{
	b->gateway = fd_socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (b->gateway < 0)
		return error_set(err, ERR_BOX_FAILED, -b->gateway, "socket for tools");
	return 0;
}

int step_listen(struct build *b, struct error *err)
{
	static const struct sockaddr_un address = {.sun_family = AF_UNIX,
	                                           .sun_path = ENGINE_GATEWAY_NAME};
	mode_t before = umask(GATEWAY_UMASK);
	int r = bind(b->gateway, (const struct sockaddr *)&address, sizeof(address));

	(void)umask(before);
	if (r < 0 || listen(b->gateway, GATEWAY_BACKLOG) < 0)
		return error_set(err, ERR_BOX_FAILED, errno, "listen at /" ENGINE_GATEWAY_NAME);
	return 0;
}
