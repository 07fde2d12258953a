/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles payload.txt into the seccomp filters of the agent and its payloads; runs at build time.
 *
 *   compile TABLE OUTPUT
 *
 * Theory of operation. libseccomp provides the call numbers; the program is emitted here, because
 * libseccomp's rules cannot express "these arguments are allowed, all others of this call get that
 * errno", in order, first match decides. A libseccomp rule set has one default for everything that
 * does not match, and an unconditional rule silently swallows the conditional ones of the same
 * call.
 *
 * A program checks the architecture, then searches ranges of numbers; a leaf is a return or the
 * block of a call that examines arguments. The kernel answers calls that do not depend on arguments
 * from a bitmap, without running the program.
 *
 * The kernel translates a program each time it is installed, and the payload's is installed for
 * every program, always on top of the agent's filter or a zygote's; the strictest answer counts. So
 * it is an "upper" one, with only what those beneath lack: it allows what they give an errno for by
 * the same rules, and for a call without a rule, which does not exist for them, it has whatever
 * answer is shortest.
 */

#include <assert.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "guest/seccomp/table.h"

#define CODE_MAX BPF_MAXINSNS

struct variant {
	const char *name;
	const char *constant; /* of enum filter */
	uint32_t refuse;      /* what "refuse" returns */
	uint32_t otherwise;   /* of calls without a rule */
	bool agent;           /* and the "agent" rules */
	bool zygote;          /* and the "zygote" rules */
	bool uncharged;       /* only the "uncharged" rules */
	bool upper;           /* on the agent's or a zygote's */
};

struct program {
	struct sock_filter code[CODE_MAX];
	unsigned len;
	size_t loaded; /* offset of what the accumulator holds; 0: unknown */
};

void fail(unsigned line, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fprintf(stderr, "payload.txt:%u: ", line);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static unsigned emit(struct program *p, struct sock_filter insn)
{
	assert(p->len < CODE_MAX);
	p->code[p->len] = insn;
	return p->len++;
}

static void emit_load(struct program *p, size_t offset)
{
	if (p->loaded != offset)
		(void)emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		                                           (uint32_t)offset));
	p->loaded = offset;
}

static void emit_return(struct program *p, uint32_t value)
{
	(void)emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

/* One half of an argument; the mismatch jump is filled in later. */
static unsigned emit_compare(struct program *p, size_t offset, uint32_t mask, uint32_t value)
{
	emit_load(p, offset);
	if (mask != UINT32_MAX) {
		(void)emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
		p->loaded = 0;
	}
	return emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0));
}

static size_t arg_offset(unsigned arg, bool high)
{
	/* Little-endian. */
	return offsetof(struct seccomp_data, args) + sizeof(uint64_t) * arg + (high ? 4 : 0);
}

static uint32_t return_value(const struct rule *r, const struct variant *v)
{
	if (r->kind == ACTION_ERRNO || r->kind == ACTION_UNCHARGED)
		return SECCOMP_RET_ERRNO | r->sys;
	return r->kind == ACTION_REFUSE ? v->refuse : SECCOMP_RET_ALLOW;
}

/* Of the rules for uncharged boxes, or of the others. */
static bool has_rule(const struct table *t, int number, bool uncharged)
{
	for (unsigned i = 0; i < t->count; i++)
		if (t->rules[i].number == number &&
		    (t->rules[i].kind == ACTION_UNCHARGED) == uncharged)
			return true;
	return false;
}

static bool applies(const struct rule *r, const struct variant *v)
{
	if (v->uncharged || r->kind == ACTION_UNCHARGED)
		return v->uncharged && r->kind == ACTION_UNCHARGED;
	return (r->kind != ACTION_AGENT || v->agent) && (r->kind != ACTION_ZYGOTE || v->zygote);
}

static bool same_condition(const struct condition *a, const struct condition *b)
{
	return a->arg == b->arg && a->wide == b->wide && a->mask == b->mask && a->value == b->value;
}

/* @r differs from @first only in its last condition's value, an int. */
static bool is_listed(const struct rule *r, const struct rule *first)
{
	unsigned last = first->count - 1;

	for (unsigned i = 0; i < last && i < r->count; i++)
		if (!same_condition(&r->conditions[i], &first->conditions[i]))
			return false;
	return r->count == first->count && r->answer == first->answer &&
	       !first->conditions[last].wide && !r->conditions[last].wide &&
	       r->conditions[last].arg == first->conditions[last].arg &&
	       r->conditions[last].mask == first->conditions[last].mask;
}

/* Return: number of comparisons, at ret_misses. */
static unsigned emit_condition(struct program *p, const struct condition *c, unsigned *ret_misses)
{
	unsigned count = 0;

	if (c->wide)
		ret_misses[count++] =
			emit_compare(p, arg_offset(c->arg, true), (uint32_t)(c->mask >> 32),
		                     (uint32_t)(c->value >> 32));
	ret_misses[count++] =
		emit_compare(p, arg_offset(c->arg, false), (uint32_t)c->mask, (uint32_t)c->value);
	return count;
}

/* @count rules that differ in their last value. */
static void emit_rules(struct program *p, const struct rule *rules, unsigned count)
{
	unsigned last = rules[0].count - 1;
	unsigned misses[2 * CONDITIONS_MAX];
	unsigned missed = 0;

	for (unsigned i = 0; i <= last; i++)
		missed += emit_condition(p, &rules[0].conditions[i], misses + missed);
	for (unsigned i = 1; i < count; i++) {
		assert(count - i <= UINT8_MAX);
		p->code[p->len - 1].jt = (uint8_t)(count - i);
		misses[missed - 1] =
			emit(p, (struct sock_filter)BPF_JUMP(
					BPF_JMP | BPF_JEQ | BPF_K,
					(uint32_t)rules[i].conditions[last].value, 0, 0));
	}
	emit_return(p, rules[0].answer);
	for (unsigned i = 0; i < missed; i++) {
		assert(p->len - misses[i] - 1 <= UINT8_MAX);
		p->code[misses[i]].jf = (uint8_t)(p->len - misses[i] - 1);
	}
	/* The misses agree only if there is one. */
	if (missed != 1)
		p->loaded = 0;
}

/* Whether @c holds if all of @given do. Return: 1, 0, or -1: it depends. */
static int holds(const struct condition *c, const struct rule *given)
{
	for (unsigned i = 0; i < given->count; i++) {
		const struct condition *g = &given->conditions[i];

		if (g->arg == c->arg && !g->wide && !c->wide && g->mask == UINT32_MAX)
			return (g->value & c->mask) == c->value;
	}
	return -1;
}

/* For a call that meets @given. Return: false: it depends. */
static bool answer_to(const struct table *t, const struct variant *v, const struct rule *given,
                      uint32_t *ret_answer)
{
	*ret_answer = v->otherwise;
	for (unsigned i = 0; i < t->count; i++) {
		const struct rule *r = &t->rules[i];
		int all = 1;

		if (r->number != given->number || !applies(r, v))
			continue;
		for (unsigned j = 0; j < r->count && all != 0; j++) {
			int one = holds(&r->conditions[j], given);
			all = one == 1 ? all : one;
		}
		if (all == 0)
			continue;
		*ret_answer = return_value(r, v);
		return all == 1;
	}
	return true;
}

/*
 * Calls that only the filters beneath allow, as rules with @v's answer. Return: false if that needs
 * all rules of the call.
 */
static bool collect_widened(const struct table *t, const struct variant *v, int number,
                            struct rule *ret_rules, unsigned *ret_count)
{
	*ret_count = 0;
	for (unsigned i = 0; i < t->count; i++) {
		const struct rule *r = &t->rules[i];
		struct rule *to = &ret_rules[*ret_count];

		if (r->number != number || (r->kind != ACTION_AGENT && r->kind != ACTION_ZYGOTE))
			continue;
		*to = *r;
		if (r->count == 0 || !answer_to(t, v, r, &to->answer)) {
			*ret_count = 0;
			return false;
		}
		++*ret_count;
	}
	return true;
}

/* That the filters beneath return by the same rules. */
static uint32_t left_to_others(uint32_t answer, bool alike)
{
	return alike && (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO ? SECCOMP_RET_ALLOW
	                                                                        : answer;
}

/* No call meets the conditions of both. */
static bool are_disjoint(const struct rule *a, const struct rule *b)
{
	for (unsigned i = 0; i < a->count; i++)
		for (unsigned j = 0; j < b->count; j++) {
			const struct condition *x = &a->conditions[i], *y = &b->conditions[j];

			if (x->arg == y->arg && ((x->value ^ y->value) & x->mask & y->mask) != 0)
				return true;
		}
	return false;
}

/* Drop rules with the default answer, unless a later one would apply. */
static unsigned without_needless(struct rule *rules, unsigned count, uint32_t rest)
{
	unsigned kept = count; /* collected at the end, last one first */

	for (unsigned i = count; i-- > 0;) {
		bool needed = rules[i].answer != rest;

		for (unsigned j = kept; j < count && !needed; j++)
			needed = rules[j].answer != rest && !are_disjoint(&rules[i], &rules[j]);
		if (needed)
			rules[--kept] = rules[i];
	}
	memmove(rules, rules + kept, (count - kept) * sizeof(rules[0]));
	return count - kept;
}

/*
 * The call's rules that examine arguments, without those that change nothing. *ret_rest: the
 * default answer. Return: how many.
 */
static unsigned collect(const struct table *t, const struct variant *v, int number,
                        struct rule *ret_rules, uint32_t *ret_rest)
{
	unsigned count = 0;
	/* Not past a filter in between: of two errnos the upper filter's counts. */
	bool alike = v->upper && !has_rule(t, number, true) &&
	             collect_widened(t, v, number, ret_rules, &count);

	*ret_rest = left_to_others(v->otherwise, alike);
	for (unsigned i = 0; i < t->count; i++) {
		const struct rule *r = &t->rules[i];
		uint32_t answer = left_to_others(return_value(r, v), alike);

		if (r->number != number || !applies(r, v))
			continue;
		if (r->count == 0) {
			*ret_rest = answer;
			break;
		}
		ret_rules[count] = *r;
		ret_rules[count++].answer = answer;
	}
	return without_needless(ret_rules, count, *ret_rest);
}

static void emit_call(struct program *p, const struct table *t, const struct variant *v, int number)
{
	static struct rule rules[RULES_MAX];
	uint32_t rest = 0;
	unsigned count = collect(t, v, number, rules, &rest);

	for (unsigned i = 0, n = 0; i < count; i += n) {
		for (n = 1; i + n < count && is_listed(&rules[i + n], &rules[i]);)
			n++;
		emit_rules(p, &rules[i], n);
	}
	emit_return(p, rest);
}

/* From @first up to the next range. */
struct range {
	uint32_t first;
	struct program *block; /* owned */
};

static bool same_block(const struct program *a, const struct program *b)
{
	return a->len == b->len && memcmp(a->code, b->code, a->len * sizeof(a->code[0])) == 0;
}

/* An errno other than @but. */
static bool gives_errno(const struct program *block, uint32_t but)
{
	for (unsigned i = 0; i < block->len; i++)
		if (BPF_CLASS(block->code[i].code) == BPF_RET && block->code[i].k != but &&
		    (block->code[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO)
			return true;
	return false;
}

static unsigned make_ranges(const struct table *t, const struct variant *v, struct range *ranges)
{
	unsigned count = 0;

	for (int number = 0; number <= NUMBERS_MAX; number++) {
		struct program *block = NULL;

		/* For the filters beneath it does not exist: stricter than its neighbour. */
		if (v->upper && count > 0 && !has_rule(t, number, false) &&
		    !gives_errno(ranges[count - 1].block, v->otherwise))
			continue;
		block = calloc(1, sizeof(*block));
		assert(block);
		emit_call(block, t, v, number);
		if (count > 0 && same_block(ranges[count - 1].block, block)) {
			free(block);
			continue;
		}
		ranges[count++] = (struct range){.first = (uint32_t)number, .block = block};
	}
	return count;
}

static void append(struct program *to, const struct program *from)
{
	for (unsigned i = 0; i < from->len; i++)
		(void)emit(to, from->code[i]);
}

/* Root first; a side too far for a conditional jump gets a long one. */
static void emit_tree(struct program *p, const struct range *ranges, unsigned count) // NOLINT
{
	unsigned half = count / 2;
	struct program *low = NULL;

	if (count == 1) {
		append(p, ranges[0].block);
		return;
	}
	low = calloc(1, sizeof(*low));
	assert(low);
	emit_tree(low, ranges, half);
	uint32_t pivot = ranges[half].first;
	if (low->len <= UINT8_MAX) {
		(void)emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, pivot,
		                                           (uint8_t)low->len, 0));
	} else {
		(void)emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, pivot, 0, 1));
		(void)emit(p, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, low->len));
	}
	append(p, low);
	free(low);
	emit_tree(p, ranges + half, count - half);
}

static bool is_conditional(const struct sock_filter *insn)
{
	return BPF_CLASS(insn->code) == BPF_JMP && BPF_OP(insn->code) != BPF_JA;
}

/* The last position in reach of a conditional jump from @from that returns the same as @to. */
static unsigned far_return(const struct program *p, unsigned from, unsigned to)
{
	unsigned last = from + 1 + UINT8_MAX < p->len ? from + 1 + UINT8_MAX : p->len - 1;

	if (BPF_CLASS(p->code[to].code) != BPF_RET)
		return to;
	while (p->code[last].code != p->code[to].code || p->code[last].k != p->code[to].k)
		last--;
	return last;
}

static void mark_reached(const struct program *p, bool *reached)
{
	/* All jumps go forward: one pass is enough. */
	reached[0] = true;
	for (unsigned i = 0; i < p->len; i++) {
		const struct sock_filter *insn = &p->code[i];

		if (!reached[i] || BPF_CLASS(insn->code) == BPF_RET)
			continue;
		if (BPF_CLASS(insn->code) != BPF_JMP) {
			reached[i + 1] = true;
		} else if (is_conditional(insn)) {
			reached[i + 1 + insn->jt] = true;
			reached[i + 1 + insn->jf] = true;
		} else {
			reached[i + 1 + insn->k] = true;
		}
	}
}

/*
 * Merge leaves that return the same, as far as jumps reach: translation costs every box time per
 * instruction.
 */
static void share_returns(struct program *p)
{
	static bool reached[CODE_MAX + 1];
	static unsigned place[CODE_MAX + 1];
	unsigned len = 0;

	for (unsigned i = 0; i < p->len; i++) {
		struct sock_filter *insn = &p->code[i];

		if (!is_conditional(insn))
			continue;
		insn->jt = (uint8_t)(far_return(p, i, i + 1 + insn->jt) - i - 1);
		insn->jf = (uint8_t)(far_return(p, i, i + 1 + insn->jf) - i - 1);
	}
	memset(reached, 0, sizeof(reached));
	mark_reached(p, reached);
	for (unsigned i = 0; i < p->len; i++) {
		place[i] = len;
		len += reached[i];
	}
	for (unsigned i = 0; i < p->len; i++) {
		struct sock_filter insn = p->code[i];

		if (!reached[i])
			continue;
		if (is_conditional(&insn)) {
			insn.jt = (uint8_t)(place[i + 1 + insn.jt] - place[i] - 1);
			insn.jf = (uint8_t)(place[i + 1 + insn.jf] - place[i] - 1);
		} else if (BPF_CLASS(insn.code) == BPF_JMP) {
			insn.k = place[i + 1 + insn.k] - place[i] - 1;
		}
		p->code[place[i]] = insn;
	}
	p->len = len;
}

static uint32_t native_arch(void)
{
	/* libseccomp's tokens are the kernel's audit values. */
	return seccomp_arch_native();
}

static void make_program(const struct table *t, const struct variant *v, struct program *p)
{
	struct range ranges[NUMBERS_MAX + 1] = {0};
	unsigned count = make_ranges(t, v, ranges);

	emit_load(p, offsetof(struct seccomp_data, arch));
	(void)emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, native_arch(), 1, 0));
	emit_return(p, SECCOMP_RET_KILL_PROCESS);
	emit_load(p, offsetof(struct seccomp_data, nr));
	emit_tree(p, ranges, count);
	share_returns(p);
	for (unsigned i = 0; i < count; i++)
		free(ranges[i].block);
}

static void print_program(FILE *f, const struct variant *v, const struct program *p)
{
	(void)fprintf(f, "static const struct sock_filter %s[] = {\n", v->name);
	for (unsigned i = 0; i < p->len; i++)
		(void)fprintf(f, "\t{0x%02x, %u, %u, 0x%08x},\n", p->code[i].code, p->code[i].jt,
		              p->code[i].jf, p->code[i].k);
	(void)fprintf(f, "};\n\n");
}

static void print_all(FILE *f, const struct table *t)
{
	/*
	 * Where two filters disagree the stricter answer counts, ERRNO before USER_NOTIF, and
	 * children keep the agent's filter. So that the payload's refusals reach the agent, its own
	 * filter returns USER_NOTIF too; without a listener that is ENOSYS.
	 */
	const uint32_t absent = SECCOMP_RET_ERRNO | ENOSYS;
	const uint32_t eperm = SECCOMP_RET_ERRNO | EPERM;
	/* "uncharged", beneath a payload's filter, allows all other calls. */
	const struct variant variants[] = {
		{"payload", "PAYLOAD", SECCOMP_RET_USER_NOTIF, absent, false, false, false, true},
		{"payload_quiet", "PAYLOAD_QUIET", eperm, absent, false, false, false, false},
		{"agent", "AGENT", SECCOMP_RET_USER_NOTIF, absent, true, false, false, false},
		{"zygote", "ZYGOTE", SECCOMP_RET_USER_NOTIF, absent, true, true, false, false},
		{"uncharged", "UNCHARGED", eperm, SECCOMP_RET_ALLOW, false, false, true, false},
	};

	(void)fprintf(f,
	              "/* Made from payload.txt by compile.c. */\n#include \"guest/filter.h\"\n\n");
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		struct program *p = calloc(1, sizeof(*p));
		assert(p);
		make_program(t, &variants[i], p);
		print_program(f, &variants[i], p);
		free(p);
	}
	(void)fprintf(f, "const struct filter_program filter_programs[FILTER_COUNT] = {\n");
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++)
		(void)fprintf(f, "\t[FILTER_%s] = {%s, ARRAY_SIZE(%s)},\n", variants[i].constant,
		              variants[i].name, variants[i].name);
	(void)fprintf(f, "};\n");
}

static FILE *open_or_fail(const char *path, const char *mode)
{
	FILE *f = fopen(path, mode);

	if (!f)
		fail(0, "cannot open %s", path);
	return f;
}

int main(int argc, char **argv)
{
	static struct table table;
	FILE *f;

	if (argc != 3)
		fail(0, "usage: compile TABLE OUTPUT");
	f = open_or_fail(argv[1], "re");
	table_read(f, &table);
	(void)fclose(f);
	f = open_or_fail(argv[2], "we");
	print_all(f, &table);
	if (fclose(f) != 0)
		fail(0, "cannot write %s", argv[2]);
	return 0;
}
