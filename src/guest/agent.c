/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/agent.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

int agent_send_failed(struct agent *a, uint32_t id, const struct error *err)
{
	struct msg_failed msg = {
		.code = err->code,
		.sys = err->sys,
		.text = wire_str(err->msg),
	};

	return msg_failed_encode(&a->ch.out, id, &msg);
}

int agent_fail(struct agent *a, uint32_t id, const struct error *err)
{
	a->failed = id;
	/* A runner may fail while another execution's files arrive. */
	if (a->put.id == id)
		put_close(&a->put);
	return agent_send_failed(a, id, err);
}

int agent_send_hello(struct agent *a)
{
	const struct msg_hello msg = {
		.version = WIRE_VERSION,
		.layers = a->layers,
		.landlock_abi = (uint32_t)a->landlock_abi,
	};

	return msg_hello_encode(&a->ch.out, 0, &msg);
}

int agent_flush(struct agent *a)
{
	int r = journal_note(&a->journal, &a->ch);

	if (r >= 0)
		r = journal_pump(&a->journal, &a->ch);
	if (r >= 0)
		r = channel_flush(&a->ch);
	a->ch.noted = a->ch.out.len;
	return r;
}

int agent_open_run_dir(const struct agent *a, bool open)
{
	/*
	 * Prevents accidents and gives programs the same modes everywhere. No security depends on
	 * it: an owner can change modes back, and Landlock has no right for that. The payload runs
	 * code from the directory with its own authority; agent and host trust no file in it, and
	 * the next execution starts from a new file (O_EXCL) and a new socket.
	 */
	if (a->setup.uid != getuid())
		return 0;
	return fchmod(a->run_dir, open ? 0755 : 0555) < 0 ? -errno : 0;
}

void agent_remove_source(const struct agent *a, const char *name)
{
	/* Closed while anything runs, if payload and agent share an id. */
	if (agent_open_run_dir(a, true) < 0)
		return;
	(void)unlinkat(a->run_dir, name, 0);
	(void)!agent_open_run_dir(a, false);
}
