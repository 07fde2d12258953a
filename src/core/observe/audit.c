/* SPDX-License-Identifier: Apache-2.0 */
#include "core/observe/audit.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/observe/audit_file.h"
#include "core/observe/metrics.h"
#include "io/spool.h"
#include "json/json_dump.h"

/* The loop formats the members of a line; the thread adds its number and its place in the chain.
 * So dropped records leave no gap: the next record written follows one that says how many were
 * lost. */

#define QUEUE_MAX (8u << 20)
#define RETRY_US  (1 * USEC_PER_SEC)
/* A power failure may lose this much. Each sync costs a disk two revolutions. */
#define SETTLE_US   (50 * USEC_PER_MS)
#define TIME_LEN    32
#define MEMBERS_MAX (CHAIN_LINE_MAX / 2)

struct audit {
	struct audit_file file; /* owned by the thread once started */
	struct audit_found found;
	struct spool *spool;
	bool required;
	int logged_error;
	char *path; /* owned; canonical */
	pthread_mutex_t lock;
	struct chain_head head; /* of what is on disk; under the lock */
};

static int write_lines(void *ctx, const char *data, size_t len, size_t *ret_taken)
{
	struct audit *a = ctx;

	return audit_file_write(&a->file, data, len, ret_taken);
}

static int settle_batch(void *ctx, bool *ret_undone)
{
	struct audit *a = ctx;
	int r = audit_file_settle(&a->file, ret_undone);

	pthread_mutex_lock(&a->lock);
	a->head = a->file.settled_head;
	pthread_mutex_unlock(&a->lock);
	return r;
}

static void set_text(json_t *object, const char *key, const char *text)
{
	json_t *value = text ? json_stringn_nocheck(text, strlen(text)) : json_null();

	(void)json_object_set_new_nocheck(object, key, value);
}

/* Without braces. Return: owned; NULL: out of memory. */
static char *make_members(const struct audit_event *e, size_t *ret_len)
{
	json_auto_t *object = json_object();
	char now[TIME_LEN];
	char *text;

	clock_format_utc(clock_real_ms(), now, sizeof(now));
	set_text(object, "time", now);
	set_text(object, "action", e->action);
	set_text(object, "tenant", e->tenant);
	set_text(object, "key_id", e->key_id);
	set_text(object, "object", e->object);
	set_text(object, "result", e->result);
	set_text(object, "request_id", e->request_id);
	if (e->detail)
		(void)json_object_set_new_nocheck(object, "detail", e->detail);
	/* ASCII only: every program agrees on where a line ends. */
	text = json_dump_text(object, JSON_COMPACT | JSON_ENSURE_ASCII);
	if (!text)
		return NULL;
	*ret_len = strlen(text) - 2;
	memmove(text, text + 1, *ret_len);
	text[*ret_len] = '\0';
	return text;
}

static int add_line(struct audit *a, const struct audit_event *event)
{
	size_t len = 0;
	cleanup_free char *members = make_members(event, &len);

	if (!members)
		return -ENOMEM;
	/* A long record must not block the others. */
	if (len > MEMBERS_MAX)
		return -EMSGSIZE;
	return spool_add(a->spool, members, len);
}

static json_t *one_number(const char *key, uint64_t value)
{
	return json_pack("{s:I}", key, (json_int_t)value);
}

/* Log when writing starts or stops failing. Return: the current error. */
static int report_error_change(struct audit *a)
{
	int failed = spool_error(a->spool);

	if (failed == a->logged_error)
		return failed;
	a->logged_error = failed;
	if (failed)
		log_err("the audit log cannot be written: %s", strerror(-failed));
	else
		log_warn("the audit log can be written again");
	return failed;
}

void audit_write(struct audit *a, const struct audit_event *event)
{
	uint64_t lost;

	if (!a || !a->spool) {
		json_decref(event->detail);
		return;
	}
	lost = report_error_change(a) ? 0 : spool_lost(a->spool);
	if (lost > 0)
		(void)!add_line(a, &(struct audit_event){.action = "audit.lost",
		                                         .result = "ok",
		                                         .detail = one_number("records", lost)});
	(void)!add_line(a, event); /* the spool counts drops */
}

int audit_check(struct audit *a, struct error *err)
{
	int failed = a && a->required && a->spool ? report_error_change(a) : 0;

	if (failed < 0)
		return error_set(err, ERR_UNAVAILABLE, -failed, "the audit log cannot be written");
	return 0;
}

void audit_measure(void *ctx, struct metrics *m)
{
	struct audit *a = ctx;

	if (!a->spool)
		return;
	metrics_set(m, METRIC_AUDIT_WAITING, (double)spool_waiting(a->spool));
	metrics_set(m, METRIC_AUDIT_FAILING, report_error_change(a) != 0);
}

struct chain_head audit_head(struct audit *a)
{
	struct chain_head head;

	pthread_mutex_lock(&a->lock);
	head = a->head;
	pthread_mutex_unlock(&a->lock);
	return head;
}

const char *audit_path(const struct audit *a)
{
	return a->path;
}

void audit_stop(struct audit *a)
{
	if (a)
		spool_free(TAKE_PTR(a->spool));
}

void audit_close(struct audit *a)
{
	if (!a)
		return;
	audit_stop(a);
	audit_file_close(&a->file);
	pthread_mutex_destroy(&a->lock);
	free(a->path);
	free(a);
}

static void log_damage(const struct audit *a)
{
	if (a->found.damage)
		log_err("the audit log is damaged (line %" PRIu64 ": %s): set aside as %s.%s",
		        a->found.bad_line, chain_fault_text(a->found.damage), a->file.path,
		        a->found.aside);
}

int audit_anchor(struct audit *a, const struct chain_head *anchor, struct error *err)
{
	bool known = a->found.damage;

	if (audit_file_anchor(&a->file, a->required, anchor, &a->found, err) < 0)
		return -1;
	if (!known)
		log_damage(a);
	a->head = a->file.head;
	return 0;
}

int audit_open(const struct audit_config *config, struct audit **ret_audit, struct error *err)
{
	struct audit *a = NEW(struct audit);

	pthread_mutex_init(&a->lock, NULL);
	a->required = config->required;
	a->file.path = xstrdup(config->path);
	a->file.max_bytes = config->max_bytes;
	a->file.keep = config->keep;
	if (audit_file_open(&a->file, config->required, &a->found, err) == 0) {
		a->path = realpath(config->path, NULL);
		if (!a->path)
			(void)error_set(err, ERR_CONFIG, errno, "find the audit log %s",
			                config->path);
	}
	if (!a->path) {
		audit_close(a);
		return -1;
	}
	a->head = a->file.head;
	log_damage(a);
	*ret_audit = a;
	return 0;
}

int audit_give(struct audit *a, uid_t uid, gid_t gid, struct error *err)
{
	if (fchown(a->file.fd, uid, gid) < 0 || fchown(a->file.head_fd, uid, gid) < 0)
		return error_set(err, ERR_CONFIG, errno, "give the audit log to user %u",
		                 (unsigned)uid);
	return 0;
}

int audit_start(struct audit *a, int (*on_thread)(struct error *err), struct error *err)
{
	const struct spool_config config = {
		.ctx = a,
		.write = write_lines,
		.settle = settle_batch,
		.on_thread = on_thread,
		.max_bytes = QUEUE_MAX,
		.retry_us = RETRY_US,
		.settle_us = SETTLE_US,
	};
	const struct audit_found *found = &a->found;

	if (spool_open(&config, &a->spool, err) < 0)
		return error_wrap(err, "audit log");
	/* Log what audit_open found. */
	if (found->torn_bytes > 0)
		audit_write(a, &(struct audit_event){
				       .action = "audit.repair",
				       .result = "ok",
				       .detail = one_number("torn_bytes", found->torn_bytes)});
	if (found->damage)
		audit_write(a,
		            &(struct audit_event){.action = "audit.damage",
		                                  .object = found->aside,
		                                  .result = chain_fault_text(found->damage),
		                                  .detail = one_number("line", found->bad_line)});
	return 0;
}
