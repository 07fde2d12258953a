/* SPDX-License-Identifier: Apache-2.0 */
#include "core/observe/metrics.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/str.h"

/* A series is one metric with one set of label values, joined to a key. Series are printed in the
 * order of first use. */

#define SERIES_ALL    4096
#define KEY_MAX       256
#define KEY_SEPARATOR '\x1f' /* in no label value */
#define OTHER         "other"

static const double buckets[] = {
	0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
	0.5,    1,     2.5,    5,     10,   30,    60,   300, 3600,
};

static const struct metric_info infos[] = {
#define METRIC(id, type, name, labels, help)                                                       \
	[METRIC_##id] = {METRIC_TYPE_##type, name, labels, help},
#include "core/observe/metrics.def"
#undef METRIC
};
static_assert(ARRAY_SIZE(buckets) <= METRIC_BUCKETS_MAX, "they can be saved");
static_assert(ARRAY_SIZE(infos) == METRIC_COUNT, "every metric has its row");

struct series {
	struct series *next; /* of the same metric */
	enum metric metric;
	char *key;                            /* owned: joined label values */
	double value;                         /* histogram: the sum */
	uint64_t count;                       /* histogram */
	uint64_t counts[ARRAY_SIZE(buckets)]; /* histogram: not cumulative */
	bool saved;                           /* unchanged since saved_* */
	double saved_value;
	uint64_t saved_count;
};

struct metrics {
	struct map *by_key[METRIC_COUNT]; /* owned, like the series; NULL: none */
	struct series *first[METRIC_COUNT], *last[METRIC_COUNT];
	size_t count;
	struct {
		metrics_source_fn *fn;
		void *ctx;
	} sources[METRICS_SOURCES_MAX];
	size_t sources_count;
};

struct metrics *metrics_new(void)
{
	struct metrics *m = NEW(struct metrics);

	metrics_set_for(m, METRIC_BUILD_INFO, METRIC_LABELS(MILLIBOX_VERSION), 1);
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < METRIC_COUNT; i++) {
		for (struct series *s = m->first[i], *next; s; s = next) {
			next = s->next;
			free(s->key);
			free(s);
		}
		map_free(m->by_key[i]);
	}
	free(m);
}

const struct metric_info *metric_info(enum metric metric)
{
	return &infos[metric];
}

static size_t labels_count(enum metric metric)
{
	const char *labels = infos[metric].labels;
	size_t count = labels[0] != '\0';

	for (; *labels; labels++)
		count += *labels == ',';
	return count;
}

/* Values that are too long count as "other". */
static void make_key(enum metric metric, const char *const *labels, char ret_key[KEY_MAX])
{
	size_t count = labels_count(metric), used = 0;

	assert((labels != NULL) == (count > 0));
	ret_key[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *value = labels[i] ? labels[i] : "";
		size_t len = strlen(value);

		if (used + len + 2 > KEY_MAX || memchr(value, KEY_SEPARATOR, len)) {
			value = OTHER;
			len = used + sizeof(OTHER) + 1 > KEY_MAX ? 0 : strlen(OTHER);
		}
		if (i > 0)
			ret_key[used++] = KEY_SEPARATOR;
		memcpy(ret_key + used, value, len);
		used += len;
		ret_key[used] = '\0';
	}
}

static struct series *find_series(const struct metrics *m, enum metric metric, const char *key)
{
	return m->by_key[metric] ? map_get(m->by_key[metric], key) : NULL;
}

static struct series *add_series(struct metrics *m, enum metric metric, const char *key)
{
	struct series *s = NEW(struct series);

	s->metric = metric;
	s->key = xstrdup(key);
	if (!m->by_key[metric])
		m->by_key[metric] = map_new();
	if (map_put(m->by_key[metric], key, s) < 0)
		abort(); /* callers looked it up */
	if (m->last[metric])
		m->last[metric]->next = s;
	else
		m->first[metric] = s;
	m->last[metric] = s;
	m->count++;
	return s;
}

static bool is_full(const struct metrics *m, enum metric metric)
{
	size_t count = m->by_key[metric] ? map_count(m->by_key[metric]) : 0;

	/* Keep room for an "other" of each metric. */
	return count >= METRICS_SERIES_MAX || m->count >= SERIES_ALL - METRIC_COUNT;
}

static struct series *series_of(struct metrics *m, enum metric metric, const char *const *labels)
{
	static const char *const other[METRICS_LABELS_MAX] = {OTHER, OTHER, OTHER};
	char key[KEY_MAX];
	struct series *s;

	make_key(metric, labels, key);
	s = find_series(m, metric, key);
	if (!s && labels && is_full(m, metric)) {
		make_key(metric, other, key);
		s = find_series(m, metric, key);
	}
	return s ? s : add_series(m, metric, key);
}

void metrics_count_for(struct metrics *m, enum metric metric, const char *const *labels, double n)
{
	if (!m)
		return;
	assert(infos[metric].type == METRIC_TYPE_COUNTER && n >= 0);
	series_of(m, metric, labels)->value += n;
}

void metrics_set_for(struct metrics *m, enum metric metric, const char *const *labels, double value)
{
	if (!m)
		return;
	/* Sources also set counters, such as the kernel's. */
	assert(infos[metric].type != METRIC_TYPE_HISTOGRAM);
	series_of(m, metric, labels)->value = value;
}

void metrics_observe_for(struct metrics *m, enum metric metric, const char *const *labels,
                         double seconds)
{
	struct series *s;
	size_t i = 0;

	if (!m)
		return;
	assert(infos[metric].type == METRIC_TYPE_HISTOGRAM);
	s = series_of(m, metric, labels);
	s->value += seconds;
	s->count++;
	while (i < ARRAY_SIZE(buckets) && seconds > buckets[i])
		i++;
	if (i < ARRAY_SIZE(buckets))
		s->counts[i]++;
}

static bool has_label(const struct series *s, size_t label, const char *value)
{
	const char *key = s->key;
	size_t len;

	for (; label > 0; label--) {
		key += strcspn(key, "\x1f");
		key += *key != '\0';
	}
	len = strcspn(key, "\x1f");
	return strlen(value) == len && memcmp(key, value, len) == 0;
}

double metrics_total_with(const struct metrics *m, enum metric metric, size_t label,
                          const char *value)
{
	bool histogram = infos[metric].type == METRIC_TYPE_HISTOGRAM;
	double total = 0;

	for (const struct series *s = m ? m->first[metric] : NULL; s; s = s->next)
		if (!value || has_label(s, label, value))
			total += histogram ? (double)s->count : s->value;
	return total;
}

double metrics_total(const struct metrics *m, enum metric metric)
{
	return metrics_total_with(m, metric, 0, NULL);
}

double metrics_sum(const struct metrics *m, enum metric metric)
{
	double sum = 0;

	for (const struct series *s = m ? m->first[metric] : NULL; s; s = s->next)
		sum += s->value;
	return sum;
}

double metrics_value(const struct metrics *m, enum metric metric, const char *const *labels)
{
	const struct series *s;
	char key[KEY_MAX];

	if (!m)
		return 0;
	make_key(metric, labels, key);
	s = find_series(m, metric, key);
	return s ? s->value : 0;
}

int metric_find(const char *name, enum metric *ret_metric)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		if (str_equal(infos[i].name, name)) {
			*ret_metric = (enum metric)i;
			return 0;
		}
	return -ENOENT;
}

static bool is_kept(enum metric metric)
{
	return infos[metric].type != METRIC_TYPE_GAUGE &&
	       !str_has_prefix(infos[metric].name, "process_");
}

static void save_one(struct series *s, void (*fn)(void *ctx, const struct metric_series *s),
                     void *ctx)
{
	bool histogram = infos[s->metric].type == METRIC_TYPE_HISTOGRAM;
	const struct metric_series changed = {
		.metric = s->metric,
		.labels = s->key,
		.value = s->value,
		.count = s->count,
		.buckets = s->counts,
		.buckets_count = histogram ? ARRAY_SIZE(s->counts) : 0,
	};

	/* Both only grow. */
	if (s->saved && s->saved_count == s->count && s->saved_value >= s->value)
		return;
	s->saved = true;
	s->saved_value = s->value;
	s->saved_count = s->count;
	fn(ctx, &changed);
}

void metrics_save(struct metrics *m, void (*fn)(void *ctx, const struct metric_series *s),
                  void *ctx)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		for (struct series *s = is_kept((enum metric)i) ? m->first[i] : NULL; s;
		     s = s->next)
			save_one(s, fn, ctx);
}

void metrics_unsave(struct metrics *m)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		for (struct series *s = m->first[i]; s; s = s->next)
			s->saved = false;
}

int metrics_restore(struct metrics *m, const struct metric_series *from)
{
	size_t count = labels_count(from->metric), values = 1;
	bool histogram = infos[from->metric].type == METRIC_TYPE_HISTOGRAM;
	struct series *s;

	for (const char *c = from->labels; *c; c++)
		values += *c == KEY_SEPARATOR;
	if (!is_kept(from->metric) || !(from->value >= 0) || strlen(from->labels) >= KEY_MAX ||
	    (count == 0 ? from->labels[0] != '\0' : values != count) ||
	    from->buckets_count != (histogram ? ARRAY_SIZE(s->counts) : 0) ||
	    is_full(m, from->metric))
		return -EINVAL;
	s = find_series(m, from->metric, from->labels);
	if (!s)
		s = add_series(m, from->metric, from->labels);
	s->value += from->value;
	s->count += from->count;
	for (size_t i = 0; i < from->buckets_count; i++)
		s->counts[i] += from->buckets[i];
	return 0;
}

void metrics_add_source(struct metrics *m, metrics_source_fn *fn, void *ctx)
{
	if (!m)
		return;
	assert(m->sources_count < METRICS_SOURCES_MAX);
	m->sources[m->sources_count].fn = fn;
	m->sources[m->sources_count++].ctx = ctx;
}

void metrics_collect(struct metrics *m)
{
	for (size_t i = 0; m && i < m->sources_count; i++)
		m->sources[i].fn(m->sources[i].ctx, m);
}

static const char *const type_names[] = {
	[METRIC_TYPE_COUNTER] = "counter",
	[METRIC_TYPE_GAUGE] = "gauge",
	[METRIC_TYPE_HISTOGRAM] = "histogram",
};
static_assert(ARRAY_SIZE(type_names) == METRIC_TYPE_COUNT, "every type has a name");

static int add_value(struct buf *b, const char *value, size_t len)
{
	int r = 0;

	for (size_t i = 0; i < len && r == 0; i++) {
		if (value[i] == '\\' || value[i] == '"' || value[i] == '\n')
			r = buf_add_str(b, "\\");
		if (r == 0)
			r = buf_add(b, value[i] == '\n' ? "n" : &value[i], 1);
	}
	return r;
}

/* name="value",... */
static int add_labels(struct buf *b, const struct series *s)
{
	const char *name = infos[s->metric].labels, *value = s->key;
	int r = 0;

	while (*name && r == 0) {
		size_t name_len = strcspn(name, ",");
		size_t value_len = strcspn(value, "\x1f");

		r = buf_addf(b, "%s%.*s=\"", name == infos[s->metric].labels ? "" : ",",
		             (int)name_len, name);
		if (r == 0)
			r = add_value(b, value, value_len);
		if (r == 0)
			r = buf_add_str(b, "\"");
		name += name_len + (name[name_len] == ',');
		value += value_len + (value[value_len] != '\0');
	}
	return r;
}

/* name[suffix]{labels[,le="..."]} @value */
static int add_sample(struct buf *b, const struct series *s, const char *suffix, const char *le,
                      double value)
{
	const struct metric_info *info = &infos[s->metric];
	bool labels = info->labels[0] != '\0';
	int r = buf_addf(b, "%s%s%s", info->name, suffix, labels || le ? "{" : "");

	if (r == 0)
		r = add_labels(b, s);
	if (r == 0 && le)
		r = buf_addf(b, "%sle=\"%s\"", labels ? "," : "", le);
	if (r == 0)
		r = buf_addf(b, "%s %.15g\n", labels || le ? "}" : "", value);
	return r;
}

static int add_histogram(struct buf *b, const struct series *s)
{
	uint64_t cumulative = 0;
	char le[32];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(buckets) && r == 0; i++) {
		cumulative += s->counts[i];
		(void)snprintf(le, sizeof(le), "%g", buckets[i]);
		r = add_sample(b, s, "_bucket", le, (double)cumulative);
	}
	if (r == 0)
		r = add_sample(b, s, "_bucket", "+Inf", (double)s->count);
	if (r == 0)
		r = add_sample(b, s, "_sum", NULL, s->value);
	return r == 0 ? add_sample(b, s, "_count", NULL, (double)s->count) : r;
}

int metrics_print(const struct metrics *m, struct buf *b)
{
	int r = 0;

	for (int i = 0; i < METRIC_COUNT && r == 0; i++) {
		const struct metric_info *info = &infos[i];

		r = buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", info->name, info->help, info->name,
		             type_names[info->type]);
		for (const struct series *s = m->first[i]; s && r == 0; s = s->next)
			r = info->type == METRIC_TYPE_HISTOGRAM
			            ? add_histogram(b, s)
			            : add_sample(b, s, "", NULL, s->value);
	}
	return r;
}
