/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/internal.h"

#include "base/fd.h"
#include "engine/netns_pool.h"
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Connections that wait for millibox-egress. */
#define EGRESS_BACKLOG 128

int step_net(struct build *b, struct error *err)
{
	b->net = netns_pool_take(b->nets);
	if (b->net < 0)
		return error_set(err, ERR_BOX_FAILED, -b->net, "network namespace");
	return 0;
}

static int listen_on_loopback(void)
{
	const struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(ENGINE_EGRESS_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	cleanup_close int fd = fd_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return fd;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, EGRESS_BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int step_egress(struct build *b, struct error *err)
{
	int r = netns_pool_visit(b->net);

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "enter the network namespace");
	b->network = listen_on_loopback();
	netns_pool_return(b->nets);
	if (b->network < 0)
		return error_set(err, ERR_BOX_FAILED, -b->network, "listen for egress");
	return 0;
}
