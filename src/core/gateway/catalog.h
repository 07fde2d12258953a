/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * DOC: what is known of the outside MCP servers: state, tools, and how often they were called. The
 * tools are the servers' words: shown, never obeyed. Loop thread only.
 */

#include "base/attr.h"
#include "service/gateway_link.h"
#include <stddef.h>
#include <stdint.h>

struct audit;
struct catalog;
struct config;
struct json_t;
struct metrics;

struct catalog_server {
	const char *name;
	const char *kind; /* "stdio" or "http"; literal */
	const char *url;  /* what programs in a box may call it */
	const char *state;
	const char *detail; /* of its last failure; "": none */
	uint32_t starts;
	uint64_t calls, errors;
	const struct json_t *tools; /* an array; NULL: not known yet */
};

void catalog_free(struct catalog *c);
struct catalog *catalog_new(const struct config *config, struct metrics *metrics,
                            struct audit *audit) attr_owned(catalog_free);
/** catalog_events - for the driver; @c must outlive it. */
const struct gateway_events *catalog_events(struct catalog *c);
/** catalog_mute - metrics and audit log are about to end. */
void catalog_mute(struct catalog *c);
size_t catalog_count(const struct catalog *c);
void catalog_at(const struct catalog *c, size_t index, struct catalog_server *ret);
/** catalog_may - may a box that asks for all tools of @server call @tool, by @allowed (texts of a
 * struct box_rules)? @tool NULL: any of them. */
bool catalog_may(const struct box_rules *allowed, const char *server, const char *tool);
const char *catalog_outcome_name(enum gateway_outcome outcome);
