/* SPDX-License-Identifier: Apache-2.0 */
#include "guest/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "guest/drop.h"
#include "guest/put.h"

void job_done(struct job *job)
{
	free(job->argv);
	free(job->env);
	free(job->cwd);
}

/* One block: pointers, then strings. A frame bounds its size. */
static char **copy_strs(const struct wire_strs *strs)
{
	size_t head = (strs->count + (size_t)1) * sizeof(char *);
	char **list = xmalloc(head + strs->encoded_len + strs->count);
	char *text = (char *)list + head;
	struct wire_bytes item;
	uint32_t pos = 0;
	size_t i = 0;

	while (wire_strs_next(strs, &pos, &item)) {
		list[i++] = text;
		memcpy(text, item.data, item.len);
		text[item.len] = '\0';
		text += item.len + 1;
	}
	list[i] = NULL;
	return list;
}

int job_make(struct job *job, const struct msg_exec *msg, struct error *err)
{
	if (msg->cwd.len > 0 && put_check_path(&msg->cwd, err) < 0)
		return error_wrap(err, "working directory");
	job->argv = copy_strs(&msg->argv);
	job->env = copy_strs(&msg->env);
	job->cwd = xmemdup0(msg->cwd.data, msg->cwd.len);
	if (!job->argv[0])
		return error_set(err, ERR_INVALID, 0, "nothing to execute");
	/* Neither PATH nor the working directory decides what runs. */
	if (job->argv[0][0] != '/')
		return error_set(err, ERR_INVALID, 0, "'%.64s' is not an absolute path",
		                 job->argv[0]);
	return 0;
}

int job_execute(const void *arg, int status, struct error *err)
{
	const struct job *job = arg;

	(void)status;
	if (drop_enter(job->cwd, err) < 0)
		return -1;
	(void)execve(job->argv[0], job->argv, job->env);
	return error_set(err, errno == E2BIG ? ERR_TOO_LARGE : ERR_BOX_FAILED, errno,
	                 "execute '%.128s': %s", job->argv[0], strerror(errno));
}
