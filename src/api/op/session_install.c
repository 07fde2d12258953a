/* SPDX-License-Identifier: Apache-2.0 */
#include "api/op/session_install.h"

#include "api/internal.h"
#include "base/alloc.h"
#include "base/str.h"
#include "core/install/install.h"
#include "core/language/manager.h"
#include "core/language/runners.h"
#include "core/session/session.h"
#include "core/session/session_files.h"
#include <stdio.h>
#include <string.h>

#define FOLDER_LEN  80
#define ENTRIES_MAX 500000

struct op_session_install {
	struct router *r;
	struct op_session_install_events events;
	char *tenant, *session_id; /* owned */
	const struct manager *manager;
	struct install *install;
	struct file_op *file; /* NULL: not begun, or ended */
	char folder[FOLDER_LEN];
	char *lock; /* owned */
};

static void op_free(struct op_session_install *op)
{
	free(op->tenant);
	free(op->session_id);
	free(op->lock);
	free(op);
}

/* "# CPython 3.11.2 ..." gives "3.11". */
static int read_version(const char *lock, char *ret_version, size_t size)
{
	const char *word = strchr(lock, ' ');
	const char *minor;
	size_t major, len;

	word = word ? strchr(word + 1, ' ') : NULL;
	if (!word)
		return -1;
	word++;
	major = strspn(word, "0123456789");
	minor = word + major + 1;
	len = word[major] == '.' ? strspn(minor, "0123456789") : 0;
	if (major == 0 || major > 2 || len == 0 || len > 2)
		return -1;
	return str_format(ret_version, size, "%.*s", (int)(major + 1 + len), word);
}

static int make_folder(struct op_session_install *op, struct error *err)
{
	char version[16] = "";

	if (strchr(op->manager->session_dir, '%') &&
	    read_version(op->lock, version, sizeof(version)) < 0)
		return error_set(err, ERR_INSTALL_FAILED, 0,
		                 "the installer does not name its interpreter");
	(void)snprintf(op->folder, sizeof(op->folder), "%.*s%s%s",
	               (int)strcspn(op->manager->session_dir, "%"), op->manager->session_dir,
	               version,
	               op->manager->session_dir + strcspn(op->manager->session_dir, "%") +
	                       (version[0] ? 1 : 0));
	return 0;
}

static void on_entry(void *ctx attr_unused, const struct box_file_entry *entry attr_unused)
{
}

static void on_data(void *ctx attr_unused, const char *data attr_unused, size_t len attr_unused)
{
}

static void on_room(void *ctx)
{
	struct op_session_install *op = ctx;

	install_room(op->install);
}

static void on_file_done(void *ctx, const struct box_file_summary *summary attr_unused)
{
	struct op_session_install *op = ctx;

	op->file = NULL;
	install_sunk(op->install, NULL);
}

static void on_file_failed(void *ctx, const struct error *err)
{
	struct op_session_install *op = ctx;
	struct error copy = *err;

	op->file = NULL;
	(void)error_wrap(&copy, "unpack the packages into the session");
	install_sunk(op->install, &copy);
}

static int on_tree(void *ctx, const char *lock, uint64_t max_bytes, struct error *err)
{
	struct op_session_install *op = ctx;
	struct session *session = session_find(op->r->parts.sessions, op->tenant, op->session_id);
	const struct box_file_events events = {
		.ctx = op,
		.on_entry = on_entry,
		.on_data = on_data,
		.on_room = on_room,
		.on_done = on_file_done,
		.on_failed = on_file_failed,
	};
	struct box_file_request request = {.op = BOX_FILE_UNTAR,
	                                   .path = op->folder,
	                                   .length = max_bytes,
	                                   .limit = ENTRIES_MAX,
	                                   .parents = true};

	op->lock = xstrdup(lock);
	if (!session)
		return error_set(err, ERR_SESSION_NOT_FOUND, 0, "the session is gone");
	if (make_folder(op, err) < 0)
		return -1;
	return file_open(session, &request, &events, &op->file, err);
}

static size_t on_write(void *ctx, const char *data, size_t len)
{
	struct op_session_install *op = ctx;

	return op->file ? file_write(op->file, data, len) : len;
}

static void on_end(void *ctx)
{
	struct op_session_install *op = ctx;

	if (op->file)
		file_end(op->file);
}

static void on_output(void *ctx, const char *data, size_t len)
{
	struct op_session_install *op = ctx;

	if (op->events.on_output)
		op->events.on_output(op->events.ctx, data, len);
}

static void on_done(void *ctx, struct layer *layer attr_unused)
{
	struct op_session_install *op = ctx;

	op->events.on_done(op->events.ctx, op->lock, op->folder);
	op_free(op);
}

static void on_failed(void *ctx, const struct error *err, const char *log)
{
	struct op_session_install *op = ctx;

	if (op->file)
		file_cancel(TAKE_PTR(op->file));
	op->events.on_failed(op->events.ctx, err, log);
	op_free(op);
}

static int check_session(const struct session *session, struct error *err)
{
	struct session_info info = {0};

	if (!session)
		return error_set(err, ERR_SESSION_NOT_FOUND, 0, "no session has this id");
	session_info(session, &info);
	if (info.state != SESSION_PAUSED)
		return 0;
	return error_set(err, ERR_CONFLICT, 0,
	                 "session %s is paused, so nothing can be unpacked there: resume it",
	                 info.id);
}

static int check_manager(const struct manager *m, const char *language, struct error *err)
{
	if (!m)
		return error_field(err, "packages", "language '%.40s' has no package manager here",
		                   language);
	if (m->session_dir)
		return 0;
	return error_field(err, "packages",
	                   "of %s cannot be installed into a session that lives: create a "
	                   "template with them",
	                   m->name);
}

int op_session_install(struct router *r, const struct op_session_packages *wanted,
                       const struct op_session_install_events *events,
                       struct op_session_install **ret_install, struct error *err)
{
	const struct manager *manager =
		manager_of(runners_find(r->parts.runners, wanted->language));
	struct session *session =
		session_find(r->parts.sessions, wanted->who->tenant, wanted->session_id);
	struct op_session_install *op;
	struct layer *none = NULL;

	if (check_session(session, err) < 0 || check_manager(manager, wanted->language, err) < 0)
		return -1;
	op = NEW(struct op_session_install);
	*op = (struct op_session_install){
		.r = r,
		.events = *events,
		.manager = manager,
		.tenant = xstrdup(wanted->who->tenant),
		.session_id = xstrdup(wanted->session_id),
	};
	const struct install_sink sink = {op, on_tree, on_write, on_end};
	const struct install_request request = {
		.tenant = wanted->who->tenant,
		.key_id = wanted->who->key_id,
		.request_id = wanted->request_id,
		.policy = session_policy(session),
		.language = wanted->language,
		.packages = wanted->packages,
		.lock = wanted->lock,
		.template = session_template(session),
		.engine = session_engine(session),
		.sink = &sink,
	};
	const struct install_events all = {op, on_output, on_done, on_failed};
	if (installs_begin(r->parts.installs, &request, &all, &op->install, &none, err) < 0) {
		op_free(op);
		return -1;
	}
	*ret_install = op;
	return 0;
}

void op_session_install_cancel(struct op_session_install *op)
{
	if (op->file)
		file_cancel(TAKE_PTR(op->file));
	install_cancel(op->install);
	op_free(op);
}
