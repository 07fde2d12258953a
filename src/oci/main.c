/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/log.h"
#include "base/sanitized.h"
#include "engine/arguments.h"
#include "engine/startup.h"
#include "oci/runtimes.h"

/*
 * millibox-oci: an engine whose boxes are made by the program of a container runtime. The daemon
 * starts it like millibox-engine and talks to it in the same way (engine/engine.h).
 */

#if SANITIZED
/* As in millibox-engine. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* Of an engine of native boxes, which the daemon may start with the same words. */
static void leave_out_native(struct options *o)
{
	o->zygote = NULL;
	o->bridge = NULL;
	o->import_memory = 0;
	o->host_network = 0;
}

static int serve_runtime(struct options *o)
{
	struct runtime_row *row = o->runtime_name ? runtime_find(o->runtime_name) : NULL;
	struct error err = {0};
	char names[128];

	if (row) {
		o->runtime = &row->runtime;
		return startup_serve(o);
	}
	runtime_names(names, sizeof(names));
	(void)error_set(&err, ERR_CONFIG, 0, "there is no runtime '%.32s': there are %s",
	                o->runtime_name ? o->runtime_name : "", names);
	return startup_fail(o, &err);
}

int main(int argc, char **argv)
{
	static const struct arguments_program program = {
		.name = "millibox-oci",
		.modes = "--runtime NAME ",
		.intro = "Makes boxes of milliboxd, which starts it, by a container runtime.",
		.has_runtimes = true,
	};
	struct arguments args;
	int r = arguments_parse(&program, argc, argv, &args);

	log_setup("millibox-oci", (enum log_level)args.log_level, (enum log_format)args.log_format);
	if (r >= 0)
		return r;
	if (!arguments_can_serve(&args))
		return arguments_usage(&program, stderr);
	leave_out_native(&args.options);
	return serve_runtime(&args.options);
}
