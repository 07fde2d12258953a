/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* DOC: reads answers of the Docker Engine. They are not trusted: any member may be missing or of
 * another type. Pure. */

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"
#include "engine/engine.h"
#include <jansson.h>
#include <stdbool.h>

struct docker_facts {
	char api[16]; /* version of the API to use: "1.41" */
	char release[ENGINE_RELEASE_LEN];
	uint32_t layers; /* that the server vouches for: enum wire_layer */
	bool maps_ids;   /* ids in a container are not those of the host */
	uint32_t cpus;
	enum engine_grade grade;
	char runtime[64]; /* whose grade that is; "": not told */
	char kernel[64];  /* its release */
};

/** docker_parse - a JSON value of bounded depth. Return: NULL: it is none. */
json_t *docker_parse(const char *text, size_t len) attr_must_check;
/** docker_parse_last - of values that follow each other. */
json_t *docker_parse_last(const char *text, size_t len) attr_must_check;
/** docker_read_version - GET /version. */
int docker_read_version(const json_t *answer, struct docker_facts *facts,
                        struct error *err) attr_must_check;
/** docker_read_info - GET /info; @runtime: as configured, or NULL. */
int docker_read_info(const json_t *answer, const char *runtime, struct docker_facts *facts,
                     struct error *err) attr_must_check;
/** docker_read_message - of an error, printable; "" if there is none. */
void docker_read_message(const json_t *answer, char *ret_text, size_t size);
/** docker_read_exit - of /wait: as of waitpid. */
int docker_read_exit(const json_t *answer);
/** docker_read_name - of the @i-th container of a list, without its slash. Return: NULL: none. */
const char *docker_read_name(const json_t *answer, size_t i);
/** docker_read_tag - the first of the @i-th image of a list. Return: NULL: none. */
const char *docker_read_tag(const json_t *answer, size_t i);
/** docker_has_volumes - whether an image has places without a limit of size. */
bool docker_has_volumes(const json_t *image);
