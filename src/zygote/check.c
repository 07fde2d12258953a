/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/str.h"
#include "zygote/internal.h"

/*
 * Verifies with the kernel the result of the steps before: a child that differs from a cold one
 * must not run a line of code.
 */

#define STATUS_MAX 4096
#define NAME_LEN   64

static const char *const namespaces[] = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"};

struct ns_dirs {
	int own;
	int agents;
};

/* "mnt:[4026531841]". Opening the link would create a file in the kernel. */
static int read_ns_name(int dir, const char *link, char ret_name[NAME_LEN])
{
	ssize_t n = readlinkat(dir, link, ret_name, NAME_LEN - 1);

	if (n < 0)
		return -errno;
	if (n == 0 || n == NAME_LEN - 1)
		return -ENAMETOOLONG;
	ret_name[n] = '\0';
	return 0;
}

static int compare_ns(const struct ns_dirs *p, const char *own, const char *of_agent)
{
	char a[NAME_LEN], b[NAME_LEN];
	int r = read_ns_name(p->own, own, a);

	if (r >= 0)
		r = read_ns_name(p->agents, of_agent, b);
	if (r < 0)
		return r;
	return str_equal(a, b) ? 0 : -EXDEV;
}

static int check_namespaces(struct error *err)
{
	cleanup_close int own = fd_open("/proc/self/ns", O_PATH | O_DIRECTORY, 0);
	cleanup_close int agents = fd_open("/proc/1/ns", O_PATH | O_DIRECTORY, 0);
	const struct ns_dirs dirs = {.own = own, .agents = agents};
	int r = own < 0 ? own : agents;

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "read namespaces");
	r = compare_ns(&dirs, "time", "time_for_children");
	if (r < 0 && r != -ENOENT)
		return error_set(err, ERR_BOX_FAILED, -r, "not in the box's time namespace");
	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		r = compare_ns(&dirs, namespaces[i], namespaces[i]);
		if (r < 0)
			return error_set(err, ERR_BOX_FAILED, -r, "not in the box's %s namespace",
			                 namespaces[i]);
	}
	return 0;
}

/* Relative to the box's cgroup namespace, so both files are the same. */
static int check_groups(struct error *err)
{
	char own[STATUS_MAX], agents[STATUS_MAX];
	int r = file_read_text_at(AT_FDCWD, "/proc/self/cgroup", own, sizeof(own));

	if (r >= 0)
		r = file_read_text_at(AT_FDCWD, "/proc/1/cgroup", agents, sizeof(agents));
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "read /proc/self/cgroup");
	return str_equal(own, agents)
	               ? 0
	               : error_set(err, ERR_BOX_FAILED, 0, "not in the box's groups");
}

/* The value of "NAME:<tab>VALUE". */
static int find_value(const char *text, const char *name, char *ret_value, size_t size)
{
	char want[32];
	const char *at = NULL;

	if (str_format(want, sizeof(want), "\n%s:\t", name) >= 0)
		at = strstr(text, want);
	if (!at)
		return -ENODATA;
	at += strlen(want);
	return str_format(ret_value, size, "%.*s", (int)strcspn(at, "\n"), at);
}

static int read_status(const char *path, struct checked *ret_checked)
{
	char text[STATUS_MAX], filters[16];
	uint64_t count = 0;
	int r = file_read_text_at(AT_FDCWD, path, text, sizeof(text));

	if (r >= 0)
		r = find_value(text, "Groups", ret_checked->groups, sizeof(ret_checked->groups));
	if (r >= 0)
		r = find_value(text, "Seccomp_filters", filters, sizeof(filters));
	if (r >= 0)
		r = parse_u64(filters, &count);
	ret_checked->filters = (unsigned)count;
	return r;
}

static int check_status(struct checked *ret_checked, struct error *err)
{
	struct checked agents;
	int r = read_status("/proc/self/status", ret_checked);

	if (r >= 0)
		r = read_status("/proc/1/status", &agents);
	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "read filters and groups");
	if (ret_checked->filters != agents.filters)
		return error_set(err, ERR_BOX_FAILED, 0, "%u filters, the agent has %u",
		                 ret_checked->filters, agents.filters);
	return str_equal(ret_checked->groups, agents.groups)
	               ? 0
	               : error_set(err, ERR_BOX_FAILED, 0,
	                           "supplementary groups '%s', the agent has '%s'",
	                           ret_checked->groups, agents.groups);
}

int check_inside(struct checked *ret_checked, struct error *err)
{
	return check_namespaces(err) < 0 || check_groups(err) < 0 ? -1
	                                                          : check_status(ret_checked, err);
}

/* The whole line "NAME:<tab>VALUE". */
static bool has_line(const char *text, const char *name, const char *value)
{
	char want[32 + CHECKED_GROUPS_LEN];
	const char *at;
	size_t len;

	if (str_format(want, sizeof(want), "\n%s:\t%s", name, value) < 0)
		return false;
	len = strlen(want);
	at = strstr(text, want);
	return at && (at[len] == '\n' || at[len] == '\0');
}

int check_payload(const struct msg_setup *setup, const struct checked *checked, struct error *err)
{
	static const char none[] = "0000000000000000";
	char text[STATUS_MAX], uids[64], gids[64], count[16];
	const struct {
		const char *name, *value;
	} lines[] = {
		{"Uid", uids},
		{"Gid", gids},
		{"CapInh", none},
		{"CapPrm", none},
		{"CapEff", none},
		{"CapBnd", none},
		{"CapAmb", none},
		{"NoNewPrivs", "1"},
		{"Seccomp", "2"},
		{"Seccomp_filters", count},
		{"Groups", checked->groups},
	};
	int r = file_read_text_at(AT_FDCWD, "/proc/self/status", text, sizeof(text));

	if (r < 0)
		return error_set(err, ERR_BOX_FAILED, -r, "read /proc/self/status");
	(void)snprintf(uids, sizeof(uids), "%u\t%u\t%u\t%u", setup->uid, setup->uid, setup->uid,
	               setup->uid);
	(void)snprintf(count, sizeof(count), "%u", checked->filters);
	(void)snprintf(gids, sizeof(gids), "%u\t%u\t%u\t%u", setup->gid, setup->gid, setup->gid,
	               setup->gid);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!has_line(text, lines[i].name, lines[i].value))
			return error_set(err, ERR_BOX_FAILED, 0, "%s is not %s", lines[i].name,
			                 lines[i].value);
	return 0;
}
