/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pool/pool_shape.h"

#include "base/str.h"
#include "core/template/images.h"

/* FNV-1a: inputs are short; a collision gains nothing. */
#define HASH_START 0xcbf29ce484222325ULL
#define HASH_PRIME 0x100000001b3ULL

static uint64_t hash_text(uint64_t h, const char *text)
{
	do
		h = (h ^ (unsigned char)*text) * HASH_PRIME;
	while (*text++);
	return h;
}

static uint64_t hash_list(uint64_t h, char *const *list)
{
	for (; list && *list; list++)
		h = hash_text(h, *list);
	return (h ^ 0xff) * HASH_PRIME;
}

static uint64_t hash_number(uint64_t h, uint64_t n)
{
	return (h ^ n ^ (n >> 32)) * HASH_PRIME;
}

/* What usually differs. */
static uint64_t hash_spec(uint64_t h, const struct box_spec *s)
{
	h = hash_text(h, s->root);
	h = hash_text(h, s->packages);
	h = hash_text(h, s->tenant);
	h = hash_number(h, s->limits.memory_bytes);
	h = hash_number(h, s->limits.workspace_bytes);
	h = hash_number(h, s->limits.pids);
	h = hash_number(h, s->keep);
	h = hash_number(h, s->limits.cpu_millicores);
	return hash_number(h, s->required_layers);
}

bool pool_shape_of(const struct policy_decision *d, const char *tenant,
                   struct pool_shape *ret_shape)
{
	struct pool_shape *s = ret_shape;

	*s = (struct pool_shape){.spec = d->spec};
	/* A network belongs to one box, as does a list of tools. An unused box must not keep an
	 * imported root. */
	if (d->spec.network != BOX_NETWORK_NONE || d->spec.tools ||
	    str_has_prefix(d->spec.root, IMAGE_ROOT_PREFIX))
		return false;
	s->spec.id[0] = s->spec.request_id[0] = '\0';
	if (str_copy(s->spec.tenant, sizeof(s->spec.tenant), tenant) < 0)
		return false;
	/* A tenant's values may be secrets, and a hit would reveal that another request used the
	 * same. Such a program gets an empty box. */
	if (d->prepare_argv && !d->own_env) {
		s->runner = d->runner;
		s->argv = d->prepare_argv;
		s->env = d->env;
		s->resident = d->resident;
	}
	s->hash = hash_list(hash_list(hash_spec(HASH_START, &s->spec), s->argv), s->env);
	return true;
}

static bool is_same_list(char *const *a, char *const *b)
{
	if (!a || !b)
		return a == b;
	for (; *a && *b; a++, b++)
		if (!str_equal(*a, *b))
			return false;
	return *a == *b;
}

bool pool_shape_is(const struct pool_shape *a, const struct pool_shape *b)
{
	return a->hash == b->hash && a->runner == b->runner && a->resident == b->resident &&
	       box_spec_is_like(&a->spec, &b->spec) && is_same_list(a->argv, b->argv) &&
	       is_same_list(a->env, b->env);
}

void pool_shape_copy(const struct pool_shape *from, struct pool_shape *ret_shape)
{
	*ret_shape = *from;
	ret_shape->argv = from->argv ? str_list_copy(from->argv) : NULL;
	ret_shape->env = from->env ? str_list_copy(from->env) : NULL;
}

void pool_shape_done(struct pool_shape *shape)
{
	str_list_free(shape->argv);
	str_list_free(shape->env);
	*shape = (struct pool_shape){0};
}
