/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration file: rejected with its line, or accepted; what is accepted survives a dump. */
#include "core/config/config.h"

#include <string.h>

#include "base/alloc.h"
#include "fuzz.h"

static char *dump(const struct config *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	require(out);
	config_dump(c, out);
	require(fclose(out) == 0);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	attr_cleanup(config_freep) struct config *first =
		config_parse((const char *)data, size, "input", NULL, 0, &err);

	if (!first) {
		require(err.code == ERR_CONFIG && err.msg[0]);
		return 0;
	}
	require(!error_is_set(&err));
	cleanup_free char *once = dump(first);
	attr_cleanup(config_freep) struct config *second =
		config_parse(once, strlen(once), "dump", NULL, 0, &err);
	require(second);
	cleanup_free char *twice = dump(second);
	require(strcmp(once, twice) == 0);
	/* Whatever a file contains, limits stay limits. */
	require(first->memory_bytes > 0 && first->memory_bytes <= first->memory_max_bytes);
	require(first->timeout_us > 0 && first->timeout_us <= first->timeout_max_us);
	require(first->processes > 0 && first->processes <= first->processes_max);
	require(first->output_bytes > 0 && first->output_bytes <= first->output_max_bytes);
	return 0;
}
