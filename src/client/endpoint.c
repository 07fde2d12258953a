/* SPDX-License-Identifier: Apache-2.0 */
#include "client/endpoint.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fd.h"
#include "base/str.h"
#include "client/credentials.h"

/* Fills only the Host header; every daemon accepts it. */
#define UNIX_URL "http://localhost"

static const struct endpoint_words library = {
	.both = "set a socket or a URL, not both",
	.untrusted = "name the certificate of its signer with millibox_set_ca_file",
	.unreached = "start milliboxd there, or set no socket and no URL",
	.missing = "start milliboxd, or call millibox_set_socket or millibox_set_url",
};

const struct endpoint_words *endpoint_words(const struct endpoint *endpoint)
{
	return endpoint->words ? endpoint->words : &library;
}

static bool is_given(const char *text)
{
	return text && *text;
}

int endpoint_find(const struct endpoint_options *options, struct endpoint *ret_endpoint,
                  struct error *err)
{
	const struct endpoint_source source = {
		.options = *options,
		.env_socket = getenv("MILLIBOX_SOCKET"),
		.env_url = getenv("MILLIBOX_URL"),
		.env_runtime_dir = getenv("XDG_RUNTIME_DIR"),
		.env_key = getenv("MILLIBOX_API_KEY"),
		.env_key_file = getenv("MILLIBOX_API_KEY_FILE"),
		.env_ca_file = getenv("MILLIBOX_CA_FILE"),
		.uid = geteuid(),
	};

	if (endpoint_choose(&source, ret_endpoint, err) < 0)
		return -1;
	/* Without a system daemon for this user, commands use or start the user's own. */
	if (!ret_endpoint->chosen && source.uid != 0 && !endpoint_is_served(ret_endpoint))
		ret_endpoint->barred =
			endpoint_use_system(ret_endpoint, ENDPOINT_SYSTEM, 0) == -EACCES;
	return 0;
}

static int choose_url(const char *url, struct endpoint *ret_endpoint, struct error *err)
{
	size_t len = strlen(url);

	if (!str_has_prefix(url, "http://") && !str_has_prefix(url, "https://"))
		return error_set(err, ERR_INVALID, 0,
		                 "'%s' is not a URL such as http://127.0.0.1:8000", url);
	while (len > 0 && url[len - 1] == '/')
		len--;
	*ret_endpoint = (struct endpoint){.url = xstrndup(url, len), .chosen = true};
	return 0;
}

static int choose_socket(char *path, bool chosen, struct endpoint *ret_endpoint, struct error *err)
{
	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		free(path);
		return error_set(err, ERR_INVALID, 0, "the socket path is too long");
	}
	*ret_endpoint = (struct endpoint){
		.socket = path,
		.url = xstrdup(UNIX_URL),
		.chosen = chosen,
	};
	return 0;
}

static int choose_place(const struct endpoint_source *source, struct endpoint *ret_endpoint,
                        struct error *err)
{
	const struct endpoint_options *o = &source->options;
	const char *runtime = source->env_runtime_dir;
	char *path;

	if (is_given(o->socket) && is_given(o->url))
		return error_set(err, ERR_INVALID, 0, "%s", (o->words ? o->words : &library)->both);
	if (is_given(o->socket))
		return choose_socket(xstrdup(o->socket), true, ret_endpoint, err);
	if (is_given(o->url))
		return choose_url(o->url, ret_endpoint, err);
	if (is_given(source->env_socket))
		return choose_socket(xstrdup(source->env_socket), true, ret_endpoint, err);
	if (is_given(source->env_url))
		return choose_url(source->env_url, ret_endpoint, err);
	if (source->uid == 0)
		path = xstrdup(ENDPOINT_SYSTEM);
	else if (runtime && runtime[0] == '/') /* the daemon ignores a relative one too */
		path = xasprintf("%s/millibox/millibox.sock", runtime);
	else
		path = xasprintf("/tmp/millibox-%u/millibox.sock", (unsigned)source->uid);
	return choose_socket(path, false, ret_endpoint, err);
}

int endpoint_choose(const struct endpoint_source *source, struct endpoint *ret_endpoint,
                    struct error *err)
{
	const struct credentials_source from = {source->env_key, source->env_key_file};
	const char *given = source->options.key;
	cleanup_free char *key = NULL;

	if (is_given(given) ? credentials_check(given, "the given text", err) < 0
	                    : credentials_read(&from, &key, err) < 0)
		return -1;
	if (choose_place(source, ret_endpoint, err) < 0)
		return -1;
	ret_endpoint->key = is_given(given) ? xstrdup(given) : TAKE_PTR(key);
	ret_endpoint->words = source->options.words;
	if (is_given(source->options.ca_file))
		ret_endpoint->ca_file = xstrdup(source->options.ca_file);
	else if (is_given(source->env_ca_file))
		ret_endpoint->ca_file = xstrdup(source->env_ca_file);
	return 0;
}

void endpoint_done(struct endpoint *endpoint)
{
	free(endpoint->key);
	free(endpoint->ca_file);
	free(endpoint->socket);
	free(endpoint->url);
	*endpoint = (struct endpoint){0};
}

int endpoint_dial(const char *path)
{
	cleanup_close int fd = fd_socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (fd < 0)
		return fd;
	if (str_copy(address.sun_path, sizeof(address.sun_path), path) < 0)
		return -ENAMETOOLONG;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int endpoint_connect(const char *path)
{
	cleanup_close int fd = endpoint_dial(path);

	return fd < 0 ? fd : 0;
}

/* Whether only @owner can put a socket at @path: its directory is @owner's, and no link. */
static bool is_directory_of(const char *path, uid_t owner)
{
	cleanup_free char *dir = xstrdup(path);
	char *slash = strrchr(dir, '/');
	struct stat st;

	if (!slash)
		return true;
	*slash = '\0';
	if (lstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	return st.st_uid == owner && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

int endpoint_use_system(struct endpoint *endpoint, const char *path, uid_t owner)
{
	int r = is_directory_of(path, owner) ? endpoint_connect(path) : -EPERM;

	if (r < 0)
		return r;
	free(endpoint->socket);
	endpoint->socket = xstrdup(path);
	return 0;
}

bool endpoint_is_served(const struct endpoint *endpoint)
{
	/* Any user can create /tmp/millibox-UID and read code sent to a socket there. */
	if (!endpoint->chosen && str_has_prefix(endpoint->socket, "/tmp/") &&
	    !is_directory_of(endpoint->socket, geteuid()))
		return false;
	return endpoint_connect(endpoint->socket) == 0;
}
