/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/vault.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"

#define VALUE_WORD "{value}"

struct place {
	bool is_tls;
	char host[TARGET_HOST_LEN];
	uint16_t port;
};

struct sealed {
	enum egress_secret_mode mode;
	char header[VAULT_TEXT_MAX + 1], format[VAULT_TEXT_MAX + 1],
		placeholder[VAULT_TEXT_MAX + 1];
	char value[VAULT_VALUE_MAX + 1];
	size_t value_len;
	struct place places[VAULT_HOSTS];
	size_t place_count;
};

struct vault {
	size_t count;
	struct sealed list[];
};

void vault_free(struct vault *v)
{
	if (!v)
		return;
	explicit_bzero(v->list, v->count * sizeof(*v->list));
	free(v);
}

void vault_freep(struct vault **v)
{
	vault_free(*v);
}

/* Reading. */

/* Return: the next text, which ends within the bytes; NULL: none. */
static const char *take_text(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', (size_t)(end - text));

	if (nul)
		*at = nul + 1;
	return nul ? text : NULL;
}

static int take_into(const char **at, const char *end, char *ret_text, size_t size)
{
	const char *text = take_text(at, end);

	return text && *text ? str_copy(ret_text, size, text) : -EINVAL;
}

static int take_place(const char **at, const char *end, struct place *ret_place)
{
	const char *text = take_text(at, end);
	struct error why = {0};
	struct target target;

	if (!text || (!str_has_prefix(text, "https://") && !str_has_prefix(text, "http://")))
		return -EINVAL;
	ret_place->is_tls = str_has_prefix(text, "https://");
	text += strlen(ret_place->is_tls ? "https://" : "http://");
	if (target_parse(text, strlen(text), 0, &target, &why) < 0 || target.is_address)
		return -EINVAL;
	memcpy(ret_place->host, target.host, sizeof(target.host));
	ret_place->port = target.port;
	return 0;
}

static int take_secret(const char **at, const char *end, struct sealed *ret)
{
	struct egress_secret head;
	char name[VAULT_TEXT_MAX + 1];

	if ((size_t)(end - *at) < sizeof(head))
		return -EINVAL;
	memcpy(&head, *at, sizeof(head));
	*at += sizeof(head);
	if (head.mode >= EGRESS_SECRET_MODE_COUNT || head.host_count > VAULT_HOSTS ||
	    take_into(at, end, name, sizeof(name)) < 0 ||
	    take_into(at, end, ret->header, sizeof(ret->header)) < 0 ||
	    take_into(at, end, ret->format, sizeof(ret->format)) < 0 ||
	    take_into(at, end, ret->placeholder, sizeof(ret->placeholder)) < 0 ||
	    take_into(at, end, ret->value, sizeof(ret->value)) < 0)
		return -EINVAL;
	ret->mode = (enum egress_secret_mode)head.mode;
	ret->value_len = strlen(ret->value);
	if (ret->value_len < VAULT_VALUE_MIN || !strstr(ret->format, VALUE_WORD))
		return -EINVAL;
	for (; ret->place_count < head.host_count; ret->place_count++)
		if (take_place(at, end, &ret->places[ret->place_count]) < 0)
			return -EINVAL;
	return 0;
}

struct vault *vault_parse(const char *data, size_t len, uint32_t count, struct error *err)
{
	const char *at = data, *end = data + len;
	cleanup_vault struct vault *v = NULL;

	if (count > EGRESS_SECRETS_MAX) {
		(void)error_set(err, ERR_INVALID, 0, "%u secrets", count);
		return NULL;
	}
	v = xcalloc(1, sizeof(*v) + count * sizeof(*v->list));
	v->count = count;
	for (uint32_t i = 0; i < count; i++)
		if (take_secret(&at, end, &v->list[i]) < 0) {
			(void)error_set(err, ERR_INVALID, 0, "secret %u is malformed", i);
			return NULL;
		}
	if (at != end) {
		(void)error_set(err, ERR_INVALID, 0, "bytes behind the secrets");
		return NULL;
	}
	return TAKE_PTR(v);
}

/* Requests. */

static bool is_for(const struct sealed *s, const struct target *target, bool is_tls)
{
	for (size_t i = 0; i < s->place_count; i++)
		if (s->places[i].is_tls == is_tls && s->places[i].port == target->port &&
		    str_equal(s->places[i].host, target->host))
			return true;
	return false;
}

bool vault_covers(const struct vault *v, const struct target *target, bool is_tls)
{
	for (size_t i = 0; v && i < v->count; i++)
		if (is_for(&v->list[i], target, is_tls))
			return true;
	return false;
}

struct writing {
	const struct vault *vault;
	const struct target *target;
	bool is_tls;
};

static bool is_field(const struct head_field *f, const char *name)
{
	return f->name_len == strlen(name) && strncasecmp(f->name, name, f->name_len) == 0;
}

/* Replaces each placeholder in the value of a header. */
static int write_replaced(const struct sealed *s, const struct head_field *f, struct buf *to)
{
	const char *at = f->value, *end = f->value + f->value_len;
	size_t len = strlen(s->placeholder);
	int r = buf_addf(to, "%.*s: ", (int)f->name_len, f->name);

	while (r == 0) {
		const char *found = memmem(at, (size_t)(end - at), s->placeholder, len);

		r = buf_add(to, at, (size_t)((found ? found : end) - at));
		if (!found || r < 0)
			break;
		r = buf_add(to, s->value, s->value_len);
		at = found + len;
	}
	return r < 0 ? r : buf_add_str(to, "\r\n");
}

static bool has_placeholder(const struct sealed *s, const struct head_field *f)
{
	return memmem(f->value, f->value_len, s->placeholder, strlen(s->placeholder)) != NULL;
}

/* Return: the secret whose placeholder the header has, or NULL. */
static const struct sealed *find_replacement(const struct writing *w, const struct head_field *f)
{
	for (size_t i = 0; i < w->vault->count; i++) {
		const struct sealed *s = &w->vault->list[i];

		if (s->mode == EGRESS_SECRET_PLACEHOLDER && is_for(s, w->target, w->is_tls) &&
		    is_field(f, s->header) && has_placeholder(s, f))
			return s;
	}
	return NULL;
}

static bool is_replaced(const struct writing *w, const struct head_field *f)
{
	for (size_t i = 0; i < w->vault->count; i++) {
		const struct sealed *s = &w->vault->list[i];

		if (s->mode == EGRESS_SECRET_HEADER && is_for(s, w->target, w->is_tls) &&
		    is_field(f, s->header))
			return true;
	}
	return false;
}

/* Return: 1: written or dropped here, 0: passes as it is, or -ENOBUFS. */
static int edit_field(const void *ctx, const struct head_field *f, struct buf *to)
{
	const struct writing *w = ctx;
	const struct sealed *s;
	int r;

	/* The answer must be readable for struct scrub. */
	if (is_field(f, "Accept-Encoding") || is_replaced(w, f))
		return 1;
	s = find_replacement(w, f);
	if (!s)
		return 0;
	r = write_replaced(s, f, to);
	return r < 0 ? r : 1;
}

/* A value may be far longer than its placeholder. */
static size_t count_placeholders(const struct writing *w, const struct head *head)
{
	size_t count = 0;

	for (size_t i = 0; i < head->field_count; i++) {
		const struct head_field *f = &head->fields[i];
		const struct sealed *s = find_replacement(w, f);
		const char *at = f->value, *end = f->value + f->value_len;

		while (s && (at = memmem(at, (size_t)(end - at), s->placeholder,
		                         strlen(s->placeholder)))) {
			at += strlen(s->placeholder);
			count++;
		}
	}
	return count;
}

static int add_fields(const void *ctx, struct buf *to)
{
	const struct writing *w = ctx;
	int r = buf_add_str(to, "Accept-Encoding: identity\r\n");

	for (size_t i = 0; i < w->vault->count && r == 0; i++) {
		const struct sealed *s = &w->vault->list[i];
		const char *at = strstr(s->format, VALUE_WORD);

		if (s->mode != EGRESS_SECRET_HEADER || !is_for(s, w->target, w->is_tls))
			continue;
		r = buf_addf(to, "%s: %.*s%s%s\r\n", s->header, (int)(at - s->format), s->format,
		             s->value, at + strlen(VALUE_WORD));
	}
	return r;
}

int vault_write(const struct vault *v, const struct head *head, bool is_tls, struct buf *to)
{
	const struct writing w = {v, &head->target, is_tls};
	const struct head_edit edit = {&w, edit_field, add_fields};

	if (v && count_placeholders(&w, head) > VAULT_PLACEHOLDERS)
		return -E2BIG;
	return head_write_origin(head, vault_covers(v, &head->target, is_tls) ? &edit : NULL, to);
}

/* Answers. */

/*
 * Values may overlap, or contain one another: they are looked for in what the server sent, and
 * overwritten in a copy.
 */
struct scrub {
	size_t count;
	struct {
		char value[VAULT_VALUE_MAX];
		size_t len;
	} list[EGRESS_SECRETS_MAX];
	struct buf kept;  /* may be the start of a value */
	struct buf shown; /* the same bytes, with values overwritten */
};

struct scrub *scrub_new(const struct vault *v, const struct target *target, bool is_tls)
{
	struct scrub *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	buf_init(&s->kept, SIZE_MAX / 2);
	buf_init(&s->shown, SIZE_MAX / 2);
	for (size_t i = 0; v && i < v->count; i++) {
		if (!is_for(&v->list[i], target, is_tls))
			continue;
		memcpy(s->list[s->count].value, v->list[i].value, v->list[i].value_len);
		s->list[s->count++].len = v->list[i].value_len;
	}
	return s;
}

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

void scrub_free(struct scrub *s)
{
	if (!s)
		return;
	explicit_bzero(s->list, sizeof(s->list));
	wipe(&s->kept);
	wipe(&s->shown);
	free(s);
}

size_t scrub_bytes(const struct scrub *s)
{
	return s ? sizeof(*s) + s->kept.cap + s->shown.cap : 0;
}

static void overwrite(struct scrub *s, const char *value, size_t len)
{
	const char *at = s->kept.data, *end = at + s->kept.len;

	for (; (at = memmem(at, (size_t)(end - at), value, len)); at++)
		memset(s->shown.data + (at - s->kept.data), '*', len);
}

/* Return: the length of the longest end of the data that is the start of a value. */
static size_t open_end(const char *data, size_t len, const char *value, size_t value_len)
{
	size_t most = value_len - 1 < len ? value_len - 1 : len;

	for (size_t n = most; n > 0; n--)
		if (memcmp(data + len - n, value, n) == 0)
			return n;
	return 0;
}

int scrub_feed(struct scrub *s, const char *data, size_t len, bool is_end, struct buf *to)
{
	size_t open = 0;
	int r = buf_add(&s->kept, data, len);

	if (r == 0)
		r = buf_add(&s->shown, data, len);
	if (r < 0 || s->kept.len == 0)
		return r;
	for (size_t i = 0; i < s->count; i++)
		overwrite(s, s->list[i].value, s->list[i].len);
	for (size_t i = 0; i < s->count && !is_end; i++) {
		size_t n = open_end(s->kept.data, s->kept.len, s->list[i].value, s->list[i].len);

		open = n > open ? n : open;
	}
	r = buf_add(to, s->shown.data, s->shown.len - open);
	if (r < 0)
		return r;
	buf_consume(&s->kept, s->kept.len - open);
	buf_consume(&s->shown, s->shown.len - open);
	return 0;
}
