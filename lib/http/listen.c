/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static int parse_port(const char *text, uint16_t *ret_port)
{
	uint64_t port;

	if (parse_u64(text, &port) < 0 || port > UINT16_MAX)
		return -EINVAL;
	*ret_port = htons((uint16_t)port);
	return 0;
}

/* A name could resolve to something unexpected. */
static int parse_address(const char *text, union address *ret_addr)
{
	bool bracketed = text[0] == '[';
	const char *host_end = bracketed ? strstr(text, "]:") : strrchr(text, ':');
	const char *port = host_end ? host_end + (bracketed ? 2 : 1) : NULL;
	char host[INET6_ADDRSTRLEN];

	*ret_addr = (union address){0};
	if (!host_end || str_format(host, sizeof(host), "%.*s", (int)(host_end - text - bracketed),
	                            text + bracketed) < 0)
		return -EINVAL;
	if (bracketed) {
		ret_addr->in6.sin6_family = AF_INET6;
		return inet_pton(AF_INET6, host, &ret_addr->in6.sin6_addr) == 1
		               ? parse_port(port, &ret_addr->in6.sin6_port)
		               : -EINVAL;
	}
	ret_addr->in.sin_family = AF_INET;
	return inet_pton(AF_INET, host, &ret_addr->in.sin_addr) == 1
	               ? parse_port(port, &ret_addr->in.sin_port)
	               : -EINVAL;
}

bool http_address_is_loopback(const char *address)
{
	union address addr;

	if (parse_address(address, &addr) < 0)
		return false;
	if (addr.any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&addr.in6.sin6_addr);
	return ntohl(addr.in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static int bind_tcp(int fd, const union address *addr)
{
	socklen_t len = addr->any.sa_family == AF_INET6 ? sizeof(addr->in6) : sizeof(addr->in);
	const int on = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	/* Inherited by connections: do not coalesce responses. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return -errno;
	if (addr->any.sa_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -errno;
	if (bind(fd, &addr->any, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return fd_set_nonblock(fd, true);
}

int http_listen_tcp(const char *address, int *ret_fd, struct error *err)
{
	cleanup_close int fd = -1;
	union address addr;
	int r;

	if (parse_address(address, &addr) < 0)
		return error_set(err, ERR_CONFIG, 0,
		                 "'%s' is not an address like 127.0.0.1:8000 or [::1]:8000",
		                 address);
	fd = fd_socket(addr.any.sa_family, SOCK_STREAM, 0);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, -fd, "create a socket for %s", address);
	r = bind_tcp(fd, &addr);
	if (r == -EADDRINUSE)
		return error_set(err, ERR_CONFIG, -r, "%s is in use by another program", address);
	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "listen on %s", address);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int http_listen_name(int fd, const char *scheme, char *ret_text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "";
	union address addr = {0};
	socklen_t len = sizeof(addr);

	if (getsockname(fd, &addr.any, &len) < 0)
		return -errno;
	if (addr.any.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &addr.in6.sin6_addr, host, sizeof(host));
		return str_format(ret_text, size, "%s://[%s]:%u", scheme, host,
		                  ntohs(addr.in6.sin6_port));
	}
	(void)inet_ntop(AF_INET, &addr.in.sin_addr, host, sizeof(host));
	return str_format(ret_text, size, "%s://%s:%u", scheme, host, ntohs(addr.in.sin_port));
}

/* Return: 0 when @addr is free, -EADDRINUSE, or an errno. */
static int clear_socket(const struct sockaddr_un *addr)
{
	cleanup_close int fd = fd_socket(AF_UNIX, SOCK_STREAM, 0);
	struct stat st;

	if (fd < 0)
		return fd;
	if (lstat(addr->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	/* A mistyped path must not delete a file. */
	if (!S_ISSOCK(st.st_mode))
		return -ENOTSOCK;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN)
		return -EADDRINUSE;
	if (errno != ECONNREFUSED)
		return -errno;
	return unlink(addr->sun_path) < 0 ? -errno : 0;
}

static int bind_unix(int fd, const struct sockaddr_un *addr, unsigned mode)
{
	/* Inaccessible until chmod: nothing can connect in between. */
	mode_t old = umask(0777);
	int r = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;

	(void)umask(old);
	if (r < 0)
		return r;
	if (chmod(addr->sun_path, mode) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return fd_set_nonblock(fd, true);
}

int http_listen_unix(const char *path, unsigned mode, int *ret_fd, struct error *err)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_close int fd = -1;
	int r;

	if (str_copy(addr.sun_path, sizeof(addr.sun_path), path) < 0)
		return error_set(err, ERR_CONFIG, 0, "socket path '%s' is longer than %zu bytes",
		                 path, sizeof(addr.sun_path) - 1);
	r = clear_socket(&addr);
	if (r == -EADDRINUSE)
		return error_set(err, ERR_CONFIG, -r, "socket %s is in use by another daemon",
		                 path);
	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "socket %s", path);
	fd = fd_socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		return error_set(err, ERR_SYSTEM, -fd, "create a socket for %s", path);
	r = bind_unix(fd, &addr, mode);
	if (r < 0)
		return error_set(err, ERR_CONFIG, -r, "listen on socket %s", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}
