/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/engine_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "driver/engine_starter.h"
#include "wire/msg.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Words besides the options: the program's name, and those that follow the options. */
#define WORDS_MORE 8

/* FNV-1a is enough: anyone able to cause a collision could replace the engine's binary anyway. */
static uint64_t mix(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * 0x100000001b3ULL;
	return hash;
}

/* A file that cannot be read is like no other. */
static uint64_t mix_file(uint64_t hash, const char *path)
{
	cleanup_close int fd = fd_open(path, O_RDONLY, 0);
	unsigned char data[16384];
	ssize_t n = fd < 0 ? -1 : 0;
	uint64_t now = clock_us();

	while (fd >= 0 && (n = read(fd, data, sizeof(data))) > 0)
		hash = mix(hash, data, (size_t)n);
	return n == 0 ? hash : mix(hash, &now, sizeof(now));
}

/* With the contents of the programs: an update or another build may enforce other rules. */
uint64_t engine_identity(const struct engine_config *config)
{
	static const uint64_t build[] = {ENGINE_VERSION, WIRE_VERSION,
	                                 sizeof(struct engine_request),
	                                 sizeof(struct engine_reply)};
	uint64_t hash = mix(0xcbf29ce484222325ULL, build, sizeof(build));

	hash = mix(hash, MILLIBOX_VERSION, sizeof(MILLIBOX_VERSION));
	hash = mix(hash, config->program, strlen(config->program) + 1);
	hash = mix_file(hash, config->program);
	for (size_t i = 0; i < config->options_count; i++) {
		const struct engine_option *o = &config->options[i];

		if (o->may_differ)
			continue;
		hash = mix(hash, o->name, strlen(o->name) + 1);
		hash = mix(hash, &o->number, sizeof(o->number));
		hash = o->word ? mix(hash, o->word, strlen(o->word) + 1) : hash;
		hash = o->is_file ? mix_file(hash, o->word) : hash;
	}
	return hash;
}

static char **add_word(char **to, const char *name, const char *word)
{
	*to++ = xstrdup(name);
	*to++ = xstrdup(word);
	return to;
}

static char **add_number(char **to, const char *name, uint64_t number)
{
	*to++ = xstrdup(name);
	*to++ = xasprintf("%llu", (unsigned long long)number);
	return to;
}

static const char *program_name(const struct engine_config *config)
{
	const char *slash = strrchr(config->program, '/');

	return slash ? slash + 1 : config->program;
}

static char **words_of(const struct engine_config *config)
{
	char **argv = xcalloc(2 * config->options_count + WORDS_MORE, sizeof(*argv)), **to = argv;

	*to++ = xstrdup(program_name(config));
	for (size_t i = 0; i < config->options_count; i++) {
		const struct engine_option *o = &config->options[i];

		to = o->word ? add_word(to, o->name, o->word) : add_number(to, o->name, o->number);
	}
	/* A new first engine may get another id: the boxes of this one live on. */
	if (config->daemon_uid)
		to = add_number(to, "--daemon-uid", config->daemon_uid);
	to = add_number(to, "--identity", engine_identity(config));
	if (config->handover)
		(void)add_word(to, "--handover", config->handover);
	return argv;
}

void engine_command_of(const struct engine_config *config, struct engine_command *ret_command)
{
	*ret_command = (struct engine_command){.program = xstrdup(config->program),
	                                       .argv = words_of(config)};
}
