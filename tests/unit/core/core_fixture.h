/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: a folder with two runners ("demo" is installed, "absent" is not) for tests of core. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "core/language/runners.h"

static inline void fixture_put(const char *dir, const char *name, const char *text)
{
	cleanup_free char *folder = xasprintf("%s/%s", dir, name);
	cleanup_free char *path = xasprintf("%s/manifest.yaml", folder);

	assert(file_mkdir_parents(folder, 0755) == 0);
	assert(file_create_at(AT_FDCWD, path, 0644, text, strlen(text)) == 0);
}

static inline void fixture_drop(const char *dir, const char *name)
{
	cleanup_free char *folder = xasprintf("%s/%s", dir, name);
	cleanup_free char *path = xasprintf("%s/manifest.yaml", folder);

	(void)unlink(path);
	(void)rmdir(folder);
}

/* @more: lines for the manifest of "demo". */
static inline struct runners *fixture_runners_with(const char *more)
{
	cleanup_free char *demo =
		xasprintf("name: demo\naliases: [d]\ntitle: Demo\nsource: main.x\n"
	                  "command: [/bin/sh, '{runner}/run', '{source}']\n"
	                  "env: {LANG: de, DEMO: '1'}\nprogram: /bin/sh\nreport: true\n%s",
	                  more);
	char dir[] = "/tmp/millibox-core-XXXXXX";
	struct error err = {0};
	struct runners *r;

	assert(mkdtemp(dir));
	fixture_put(dir, "demo", demo);
	fixture_put(dir, "absent",
	            "name: absent\ntitle: Absent\nsource: m\ncommand: [/nonexistent/absent]\n"
	            "program: /nonexistent/absent\n");
	r = runners_load(dir, NULL, &err);
	assert(r);
	fixture_drop(dir, "demo");
	fixture_drop(dir, "absent");
	(void)rmdir(dir);
	return r;
}

static inline struct runners *fixture_runners(void)
{
	return fixture_runners_with("");
}
