/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * Theory of operation. Runs once, before the loop and with the daemon's privileges, so it may
 * block, within limits. We hold the lock of our state directory: if an engine answers to its name,
 * its daemon is dead.
 *
 * An engine of another binary or configuration would enforce other rules than our operator's. It
 * gets the order to end, with its boxes.
 */

/* Return: the socket, or -1: no engine. */
static int connect_to_engine(const struct engine_config *config)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	cleanup_close int dir = fd_open(config->runtime_dir, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	cleanup_close int sock = fd_socket(AF_UNIX, SOCK_SEQPACKET, 0);

	/* The longest valid path does not fit into sun_path. */
	if (dir < 0 || sock < 0 ||
	    str_format(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s", dir,
	               config->handover) < 0)
		return -1;
	if (connect(sock, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -1;
	return TAKE_FD(sock);
}

/* The listener must run as our user, like our own engine. */
static int check_peer(int sock)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t len = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	return peer.uid == geteuid() ? 0 : -EPERM;
}

/* Until then it holds its name, lock and boxes. */
static void wait_for_end(int pidfd)
{
	uint64_t deadline = clock_us() + ENGINE_END_TIMEOUT_US;

	if (engine_wait_readable(pidfd, deadline) >= 0)
		return;
	log_warn("the engine of an earlier daemon does not exit, killing it");
	(void)fd_pidfd_kill(pidfd, SIGKILL);
	(void)engine_wait_readable(pidfd, clock_us() + ENGINE_END_TIMEOUT_US);
}

/* Return: pidfd, or a negative errno: another user's process. */
static int open_peer(int sock)
{
	int r = check_peer(sock);

	return r < 0 ? r : fd_peer_pidfd(sock);
}

/* With its boxes. */
static void end_engine(int sock, int pidfd)
{
	struct engine_request request = {.op = ENGINE_END, .seq = ENGINE_PROBE_SEQ + 1};

	(void)!fd_send(sock, &request, sizeof(request), NULL, 0);
	wait_for_end(pidfd);
}

static bool probe_engine(int sock, int pidfd, struct engine_probe *ret_probe,
                         struct helper_group *ret_group)
{
	struct error err = {0};

	if (engine_probe(sock, ret_probe, ret_group, &err) == 0)
		return true;
	/* It kept no boxes and was exiting. */
	log_debug("the engine of an earlier daemon: %s", err.msg);
	wait_for_end(pidfd);
	return false;
}

bool engine_handover_find(const struct engine_config *config, struct engine_process *ret_engine)
{
	cleanup_close int sock = config->handover ? connect_to_engine(config) : -1;
	cleanup_close int pidfd = sock < 0 ? -1 : open_peer(sock);
	attr_cleanup(helper_group_close) struct helper_group group = {0};
	struct engine_probe probe = {0};

	if (sock < 0)
		return false;
	if (pidfd < 0) {
		log_warn("another user listens in %s, ignoring", config->runtime_dir);
		return false;
	}
	if (!probe_engine(sock, pidfd, &probe, &group))
		return false;
	if (probe.identity != engine_identity(config)) {
		log_warn("the engine of an earlier daemon has another binary or other "
		         "settings, ending its boxes");
		end_engine(sock, pidfd);
		return false;
	}
	*ret_engine = (struct engine_process){
		.sock = TAKE_FD(sock),
		.pidfd = TAKE_FD(pidfd),
		.probe = probe,
		.import_group = TAKE(group, (struct helper_group){0}),
	};
	return true;
}

void engine_handover_end(const struct engine_config *config)
{
	cleanup_close int sock = config->handover ? connect_to_engine(config) : -1;
	cleanup_close int pidfd = sock < 0 ? -1 : open_peer(sock);
	attr_cleanup(helper_group_close) struct helper_group group = {0};
	struct engine_probe probe;

	if (pidfd < 0 || !probe_engine(sock, pidfd, &probe, &group))
		return;
	log_warn("the settings do not allow network host any more: ending its boxes");
	end_engine(sock, pidfd);
}

void engine_kept_free(struct engine_kept *kept)
{
	list_remove(&kept->node);
	for (size_t i = 0; i < ENGINE_FD_COUNT; i++)
		(void)fd_close(kept->fds[i]);
	free(kept);
}

static int take_kept(struct engine_driver *e, const struct engine_reply *reply, int *fds,
                     size_t count, struct error *err)
{
	const struct engine_created *created = &reply->created;
	struct engine_kept *kept;

	if (strnlen(reply->box_id, sizeof(reply->box_id)) == sizeof(reply->box_id))
		return engine_bad_reply(err, "sent an unterminated box id");
	kept = NEW(struct engine_kept);
	if (!(created->fds & (1U << ENGINE_FD_AGENT)) || (created->layers & ~LAYERS_ALL) ||
	    (created->vouched & ~LAYERS_ALL) || created->frozen > 1 ||
	    engine_sort_fds(fds, count, created->fds, kept->fds) < 0) {
		free(kept);
		return engine_bad_reply(err, "sent an invalid description of a box");
	}
	memcpy(kept->id, reply->box_id, sizeof(kept->id));
	kept->created = *created;
	list_append(&e->kept, &kept->node);
	return 0;
}

/* Return: 1 for more, 0 at the end, or -1. */
static int receive_kept(struct engine_driver *e, struct error *err)
{
	struct engine_reply reply;
	int fds[FD_PASS_MAX];
	size_t count = 0;
	int r = engine_wait_readable(e->sock, clock_us() + ENGINE_PROBE_TIMEOUT_US);
	ssize_t len = r < 0 ? r : fd_recv(e->sock, &reply, sizeof(reply), fds, &count);

	if (len < 0)
		return error_set(err, ERR_UNAVAILABLE, (int)-len, "read the list of kept boxes");
	if (len != sizeof(reply))
		r = engine_bad_reply(err, len ? "sent a reply of the wrong size" : "ended");
	else if (reply.op == ENGINE_KEPT)
		r = take_kept(e, &reply, fds, count, err) < 0 ? -1 : 1;
	else if (reply.op != ENGINE_ADOPTED)
		/* Sent before our request; anything else is an error. */
		r = engine_is_of_past(&reply) ? 1 : engine_bad_reply(err, "did not list its boxes");
	for (size_t i = 0; i < count; i++)
		(void)fd_close(fds[i]);
	return r;
}

int engine_handover_list(struct engine_driver *e, struct error *err)
{
	struct engine_request request = {.op = ENGINE_ADOPT};
	int r = 1;

	if (engine_driver_send(e, &request) == 0)
		return error_set(err, ERR_UNAVAILABLE, 0, "millibox-engine is gone");
	while (r > 0)
		r = receive_kept(e, err);
	return r;
}
