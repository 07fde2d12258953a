/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/request.h"

#include <string.h>

#define KIB 1024ULL
#define MIB (1024ULL * KIB)
#define GIB (1024ULL * MIB)
#define TIB (1024ULL * GIB)

static bool is_zero(const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		if (p[i] != 0)
			return false;
	return true;
}

/* [a-z0-9]{1,31}, NUL-padded. */
static bool is_box_id(const char id[ENGINE_ID_LEN])
{
	size_t len = strnlen(id, ENGINE_ID_LEN);

	if (len == 0 || len == ENGINE_ID_LEN)
		return false;
	return strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == len &&
	       is_zero(id + len, ENGINE_ID_LEN - len);
}

struct range {
	const char *field;
	size_t offset;
	bool wide; /* uint64_t, else uint32_t */
	uint64_t min;
	uint64_t max;
	uint64_t standard;
};

#define WIDE(name)   "limits." #name, offsetof(struct engine_limits, name), true
#define NARROW(name) "limits." #name, offsetof(struct engine_limits, name), false

/*
 * Below the lower bounds no program starts, which would look like a bug of ours. Upper bounds: what
 * the kernel accepts without wrapping. A tmpfs of size 0 would have no limit.
 */
static const struct range ranges[] = {
	{WIDE(memory_bytes), 4 * MIB, 16 * TIB, 512 * MIB},
	{WIDE(workspace_bytes), 64 * KIB, 16 * TIB, 256 * MIB},
	{WIDE(tmp_bytes), 64 * KIB, 16 * TIB, 128 * MIB},
	{WIDE(shm_bytes), 64 * KIB, 16 * TIB, 64 * MIB},
	{NARROW(workspace_inodes), 16, 100000000, 50000},
	{NARROW(tmp_inodes), 16, 100000000, 20000},
	{NARROW(pids), 2, 4194304, 128},
	{NARROW(cpu_millicores), 10, 1024000, 1000},
};

static uint64_t get_limit(const struct engine_limits *limits, const struct range *range)
{
	const char *at = (const char *)limits + range->offset;
	uint64_t wide;
	uint32_t narrow;

	if (range->wide) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

static void set_limit(struct engine_limits *limits, const struct range *range, uint64_t value)
{
	char *at = (char *)limits + range->offset;
	uint32_t narrow = (uint32_t)value;

	if (range->wide)
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

struct engine_limits request_limits_default(void)
{
	struct engine_limits limits = {0};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		set_limit(&limits, &ranges[i], ranges[i].standard);
	return limits;
}

struct engine_limits request_limits_most(void)
{
	struct engine_limits limits = {0};

	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		set_limit(&limits, &ranges[i], ranges[i].max);
	return limits;
}

int request_limits_within(const struct engine_limits *limits, const struct engine_limits *maxima,
                          struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		uint64_t most = get_limit(maxima, &ranges[i]);

		if (get_limit(limits, &ranges[i]) > most)
			return error_field(err, ranges[i].field, "the operator allows at most %llu",
			                   (unsigned long long)most);
	}
	return 0;
}

int request_limits_check(const struct engine_limits *limits, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		uint64_t value = get_limit(limits, &ranges[i]);

		if (value < ranges[i].min || value > ranges[i].max)
			return error_field(err, ranges[i].field, "must be %llu to %llu",
			                   (unsigned long long)ranges[i].min,
			                   (unsigned long long)ranges[i].max);
	}
	return 0;
}

/* To look up in --roots: no leading dot, no slash, NUL-padded. */
static bool is_root_name(const char name[ENGINE_ROOT_LEN])
{
	size_t len = strnlen(name, ENGINE_ROOT_LEN);

	if (len == 0 || len == ENGINE_ROOT_LEN || name[0] == '.')
		return false;
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != len)
		return false;
	return is_zero(name + len, ENGINE_ROOT_LEN - len);
}

/* @wanted: the request has the flag that needs it. */
static int check_name(const char *field, const char name[ENGINE_ROOT_LEN], bool wanted,
                      struct error *err)
{
	if (!wanted && !is_zero(name, ENGINE_ROOT_LEN))
		return error_field(err, field, "does not apply to this operation");
	if (wanted && !is_root_name(name))
		return error_field(err, field, "must be 1 to %d characters of [a-z0-9._-]",
		                   ENGINE_ROOT_LEN - 1);
	return 0;
}

static int check_root(const struct engine_request *req, struct error *err)
{
	if (check_name("root", req->root, req->flags & ENGINE_FLAG_IMAGE, err) < 0)
		return -1;
	return check_name("packages", req->packages, req->flags & ENGINE_FLAG_PACKAGES, err);
}

/* Return: length of the file name at the start of @name; 0: none. */
static size_t name_len(const char *name)
{
	return name[0] == '.' ? 0 : strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-");
}

/* FOLDER/FILE below the runners directory. */
static bool is_command(const char command[ENGINE_COMMAND_LEN])
{
	size_t len = strnlen(command, ENGINE_COMMAND_LEN);
	size_t folder, file;

	if (len == ENGINE_COMMAND_LEN || !is_zero(command + len, ENGINE_COMMAND_LEN - len))
		return false;
	folder = name_len(command);
	if (folder == 0 || command[folder] != '/')
		return false;
	file = name_len(command + folder + 1);
	return file > 0 && folder + 1 + file == len;
}

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* Only these characters, NUL-terminated and NUL-padded. */
static bool is_text_of(const char *text, size_t size, const char *allowed)
{
	size_t len = strnlen(text, size);

	return len < size && strspn(text, allowed) == len && is_zero(text + len, size - len);
}

static bool are_modules(const char modules[ENGINE_MODULES_LEN])
{
	return is_text_of(modules, ENGINE_MODULES_LEN, LETTERS_AND_DIGITS "_. ");
}

#define TENANT_FORM "must be up to %d characters of [A-Za-z0-9_-]"

/* Becomes part of the name of a directory. */
static bool is_tenant(const char tenant[ENGINE_TENANT_LEN])
{
	return is_text_of(tenant, ENGINE_TENANT_LEN, LETTERS_AND_DIGITS "_-");
}

static int check_create(const struct engine_request *req, struct error *err)
{
	if (!is_tenant(req->tenant))
		return error_field(err, "tenant", TENANT_FORM, ENGINE_TENANT_LEN - 1);
	if (req->zygote > ENGINE_ZYGOTES_MAX)
		return error_field(err, "zygote", "must be 0 to %d", ENGINE_ZYGOTES_MAX);
	if (req->flags & ~(uint32_t)ENGINE_FLAGS_ALL)
		return error_field(err, "flags", "unknown flag");
	if (req->ranges != 0 && !(req->flags & ENGINE_FLAG_BRIDGE))
		return error_field(err, "ranges", "does not apply to this network");
	/* What would otherwise be made in the network of the host. */
	if ((req->flags & ENGINE_FLAG_HOST_NETWORK) &&
	    (req->flags & (ENGINE_FLAG_EGRESS | ENGINE_FLAG_BRIDGE)))
		return error_field(err, "flags", "a box has one kind of network");
	if (req->frozen != 0)
		return error_field(err, "frozen", "does not apply to this operation");
	if (check_root(req, err) < 0)
		return -1;
	return request_limits_check(&req->limits, err);
}

/* Of a request that is about a box, not its description. */
static int check_no_description(const struct engine_request *req, struct error *err)
{
	if (!is_zero(req->tenant, sizeof(req->tenant)))
		return error_field(err, "tenant", "does not apply to this operation");
	if (req->zygote != 0)
		return error_field(err, "zygote", "does not apply to this operation");
	if (!is_zero(&req->limits, sizeof(req->limits)))
		return error_field(err, "limits", "do not apply to this operation");
	return check_root(req, err);
}

/* The same of one that does not change its network. */
static int check_no_network(const struct engine_request *req, struct error *err)
{
	if (req->ranges != 0)
		return error_field(err, "ranges", "does not apply to this operation");
	if (req->flags != 0)
		return error_field(err, "flags", "do not apply to this operation");
	return check_no_description(req, err);
}

static int check_destroy(const struct engine_request *req, struct error *err)
{
	if (req->frozen != 0)
		return error_field(err, "frozen", "does not apply to this operation");
	return check_no_network(req, err);
}

static int check_freeze(const struct engine_request *req, struct error *err)
{
	if (req->frozen > 1)
		return error_field(err, "frozen", "must be 0 or 1");
	return check_no_network(req, err);
}

static int check_reach(const struct engine_request *req, struct error *err)
{
	if (req->frozen != 0)
		return error_field(err, "frozen", "does not apply to this operation");
	if (req->flags != 0 && req->flags != ENGINE_FLAG_BRIDGE)
		return error_field(err, "flags", "only an interface can be changed");
	if (req->ranges != 0 && req->flags == 0)
		return error_field(err, "ranges", "does not apply to this network");
	return check_no_description(req, err);
}

/* Operations without a row are not requests. */
static const struct {
	bool has_box;
	int (*check)(const struct engine_request *req, struct error *err);
} checks[ENGINE_OP_COUNT] = {
	[ENGINE_PROBE] = {false, check_destroy},  [ENGINE_CREATE] = {true, check_create},
	[ENGINE_DESTROY] = {true, check_destroy}, [ENGINE_FREEZE] = {true, check_freeze},
	[ENGINE_ADOPT] = {false, check_destroy},  [ENGINE_END] = {false, check_destroy},
	[ENGINE_CLAIM] = {true, check_destroy},   [ENGINE_REACH] = {true, check_reach},
};

static int check_box_id(const struct engine_request *req, bool has_box, struct error *err)
{
	if (has_box && !is_box_id(req->box_id))
		return error_field(err, "box_id", "must be 1 to %d characters of [a-z0-9]",
		                   ENGINE_ID_LEN - 1);
	if (!has_box && !is_zero(req->box_id, sizeof(req->box_id)))
		return error_field(err, "box_id", "does not apply to this operation");
	return 0;
}

int request_check(const void *data, size_t len, struct engine_request *ret_request,
                  struct error *err)
{
	struct engine_request req = {0};

	*ret_request = req;
	if (len != sizeof(req))
		return error_set(err, ERR_PROTOCOL, 0, "a request of %zu bytes, not %zu", len,
		                 sizeof(req));
	memcpy(&req, data, sizeof(req));
	ret_request->op = req.op;
	ret_request->seq = req.seq;
	if (is_box_id(req.box_id))
		memcpy(ret_request->box_id, req.box_id, sizeof(req.box_id));
	if (req.op >= ENGINE_OP_COUNT || !checks[req.op].check)
		return error_set(err, ERR_PROTOCOL, 0, "operation %u is not a request", req.op);
	if (req.seq == 0)
		return error_field(err, "seq", "must not be 0");
	if (check_box_id(&req, checks[req.op].has_box, err) < 0 ||
	    checks[req.op].check(&req, err) < 0)
		return -1;
	*ret_request = req;
	return 0;
}

int request_check_zygote(const void *data, size_t len, struct engine_zygote *ret_request,
                         struct error *err)
{
	struct engine_zygote req;

	if (len != sizeof(req))
		return error_set(err, ERR_PROTOCOL, 0, "a request of %zu bytes, not %zu", len,
		                 sizeof(req));
	memcpy(&req, data, sizeof(req));
	ret_request->seq = req.seq;
	if (req.op != ENGINE_ZYGOTE)
		return error_set(err, ERR_PROTOCOL, 0, "operation %u has another size", req.op);
	if (req.seq == 0)
		return error_field(err, "seq", "must not be 0");
	if (req.zygote == 0 || req.zygote > ENGINE_ZYGOTES_MAX || req.unused != 0)
		return error_field(err, "zygote", "must be 1 to %d", ENGINE_ZYGOTES_MAX);
	if (!is_command(req.command))
		return error_field(err, "command", "must be FOLDER/FILE of [a-z0-9._-]");
	if (!are_modules(req.modules))
		return error_field(err, "modules", "must be names of [A-Za-z0-9_.]");
	if (!is_tenant(req.tenant) || !is_zero(req.padding, sizeof(req.padding)))
		return error_field(err, "tenant", TENANT_FORM, ENGINE_TENANT_LEN - 1);
	*ret_request = req;
	return 0;
}
