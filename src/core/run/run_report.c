/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_report.h"

#include <assert.h>
#include <sodium.h>

#include "base/clock.h"
#include "base/str.h"
#include "core/run/outcome.h"
#include "core/run/run_record_internal.h"

#define COULD_NOT_RUN "error"
#define SECONDS(us)   ((double)(us) / 1e6)

void run_report_metrics(struct metrics *m, const char *language, const struct outcome *o)
{
	const char *status = o ? outcome_status_name(o->status) : COULD_NOT_RUN;
	const char *start;

	if (!m)
		return;
	metrics_count_for(m, METRIC_EXECUTIONS, METRIC_LABELS(language, status), 1);
	if (!o)
		return;
	/* How the box's first program started, or why not the wanted way. */
	start = box_start_reason((enum box_start)o->start);
	if (!start)
		start = o->start == BOX_START_ZYGOTE ? "zygote" : "cold";
	metrics_count_for(m, METRIC_STARTS, METRIC_LABELS(start), 1);
	metrics_observe(m, METRIC_EXEC_QUEUE, SECONDS(o->queue_us));
	metrics_observe(m, METRIC_EXEC_START, SECONDS(o->start_us));
	metrics_observe_for(m, METRIC_EXEC_RUN, METRIC_LABELS(language), SECONDS(o->duration_us));
	metrics_observe(m, METRIC_EXEC_TOTAL, SECONDS(o->queue_us + o->start_us + o->duration_us));
	if (o->cpu_us != COUNTER_UNKNOWN)
		metrics_count(m, METRIC_EXEC_CPU, SECONDS(o->cpu_us));
	metrics_count_for(m, METRIC_EXEC_OUTPUT, METRIC_LABELS("stdout"), (double)o->stdout_bytes);
	metrics_count_for(m, METRIC_EXEC_OUTPUT, METRIC_LABELS("stderr"), (double)o->stderr_bytes);
	if (outcome_limit_name(o->limit))
		metrics_count_for(m, METRIC_LIMITS, METRIC_LABELS(outcome_limit_name(o->limit)), 1);
	for (unsigned i = 0; i < o->denials_count && i < DENIALS_MAX; i++)
		metrics_count_for(m, METRIC_DENIALS, METRIC_LABELS(o->denials[i].kind), 1);
}

/* Tenants beyond the bound of series count as one. */
static void count_network(struct metrics *m, const char *tenant, const struct outcome *o)
{
	if (!m)
		return;
	if (o->net_sent != COUNTER_UNKNOWN) {
		metrics_count_for(m, METRIC_EGRESS_BYTES, METRIC_LABELS(tenant, "sent"),
		                  (double)o->net_new.sent);
		metrics_count_for(m, METRIC_EGRESS_BYTES, METRIC_LABELS(tenant, "received"),
		                  (double)o->net_new.received);
	}
	if (o->net_connections != COUNTER_UNKNOWN)
		metrics_count_for(m, METRIC_EGRESS_OPENED, METRIC_LABELS(tenant),
		                  (double)o->net_new.connections);
	for (unsigned i = 0; i < o->denials_count && i < DENIALS_MAX; i++)
		if (str_equal(o->denials[i].kind, DENIAL_KIND_NETWORK))
			metrics_count_for(m, METRIC_EGRESS_DENIED,
			                  METRIC_LABELS(tenant, o->denials[i].rule),
			                  (double)(o->denials[i].count - o->denials[i].repeated));
}

/* What the box used of the network; NULL: it had none. */
static json_t *network_of(const struct outcome *o)
{
	if (o->net_sent == COUNTER_UNKNOWN)
		return NULL;
	return json_pack("{s:I, s:I, s:o}", "sent_bytes", (json_int_t)o->net_sent, "received_bytes",
	                 (json_int_t)o->net_received, "connections",
	                 o->net_connections == COUNTER_UNKNOWN
	                         ? json_null()
	                         : json_integer((json_int_t)o->net_connections));
}

void run_report_hash(const char *code, size_t len, char ret_hex[RUN_REPORT_HASH_LEN])
{
	unsigned char hash[crypto_hash_sha256_BYTES];

	static_assert(RUN_REPORT_HASH_LEN == 2 * crypto_hash_sha256_BYTES + 1, "it fits");
	(void)crypto_hash_sha256(hash, (const unsigned char *)code, len); /* cannot fail */
	(void)sodium_bin2hex(ret_hex, RUN_REPORT_HASH_LEN, hash, sizeof(hash));
}

json_t *run_report_limits(const struct box_limits *l)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "memory_bytes", (json_int_t)l->memory_bytes,
	                 "disk_bytes", (json_int_t)l->workspace_bytes, "cpu_millicores",
	                 (json_int_t)l->cpu_millicores, "processes", (json_int_t)l->pids);
}

static void add_outcome(json_t *j, const struct outcome *o)
{
	json_t *list = o->denials_count > 0 ? json_array() : NULL;

	/* Names are ours or the kernel's. */
	for (unsigned i = 0; i < o->denials_count && i < DENIALS_MAX; i++)
		(void)json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:I}", "kind", o->denials[i].kind, "what",
		                        o->denials[i].what, "rule", o->denials[i].rule, "count",
		                        (json_int_t)o->denials[i].count));
	(void)json_object_update_new(
		j, json_pack("{s:o, s:o, s:s?, s:f, s:o*, s:o*}", "exit_code",
	                     o->exited ? json_integer(o->exit_code) : json_null(), "signal",
	                     o->signal ? json_integer(o->signal) : json_null(), "limit",
	                     outcome_limit_name(o->limit), "duration_ms",
	                     (double)o->duration_us / USEC_PER_MS, "denials", list, "network",
	                     network_of(o)));
}

void run_report_end(const struct run_record *e, struct metrics *metrics, struct audit *audit,
                    const struct box_limits *limits)
{
	const struct outcome *o = e->has_outcome ? &e->outcome : NULL;
	char hash[RUN_REPORT_HASH_LEN] = "";
	json_t *detail;

	run_report_metrics(metrics, e->language, o);
	if (o)
		count_network(metrics, e->tenant, o);
	if (!audit)
		return;
	if (e->code)
		run_report_hash(e->code, e->code_len, hash);
	detail = json_pack("{s:s?, s:s?, s:s?, s:I, s:o*}", "session_id", e->session_id, "language",
	                   e->language, "code_sha256", e->code ? hash : e->code_hash, "timeout_ms",
	                   (json_int_t)(e->timeout_us / USEC_PER_MS), "limits",
	                   limits ? run_report_limits(limits) : NULL);
	if (o)
		add_outcome(detail, o);
	audit_write(audit, &(struct audit_event){
				   .action = "execution.end",
				   .tenant = e->tenant,
				   .key_id = e->key_id,
				   .object = e->id,
				   .result = o ? outcome_status_name(o->status)
	                                       : error_text(e->failure.code),
				   .request_id = e->request_id,
				   .detail = detail,
			   });
}
