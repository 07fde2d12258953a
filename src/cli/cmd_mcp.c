/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/fd.h"
#include "cli/client/bridge.h"
#include "cli/client/endpoint.h"
#include "cli/client/interrupt.h"
#include "cli/client/own_daemon.h"
#include "cli/common_options.h"
#include "cli/message.h"

struct mcp_options {
	struct endpoint_options at;
};

static void own_daemon_endp(struct own_daemon **d)
{
	own_daemon_end(*d);
}

/* Standard output is the protocol's: whatever else is said goes to standard error. */
static int run(const void *values, const struct args *args, struct error *err)
{
	const struct mcp_options *options = values;
	cleanup_endpoint struct endpoint endpoint = {0};
	cleanup_close int interrupt_fd = -1;
	attr_cleanup(own_daemon_endp) struct own_daemon *own = NULL;
	struct endpoint at;

	if (args->words_count > 0) {
		(void)error_set(err, ERR_INVALID, 0, "no arguments are expected");
		return CLI_USAGE;
	}
	if (endpoint_find(&options->at, &endpoint, err) < 0)
		return CLI_USAGE;
	interrupt_fd = interrupt_open();
	if (interrupt_fd < 0) {
		(void)error_set(err, ERR_SYSTEM, -interrupt_fd, "make a signal descriptor");
		return CLI_ERROR;
	}
	at = endpoint;
	if (!endpoint.chosen && !endpoint_is_served(&endpoint)) {
		own = own_daemon_start(interrupt_fd, err);
		if (!own)
			return CLI_ERROR;
		at.socket = (char *)(uintptr_t)own_daemon_socket(own);
		message_show("no daemon is there: one was started, and ends with this program");
	}
	return bridge_run(&at, interrupt_fd, err) < 0 ? CLI_ERROR : CLI_OK;
}

#define AT(member) offsetof(struct mcp_options, member)

static const struct option_row rows[] = {
	ENDPOINT_ROWS(AT(at)),
};

const struct command command_mcp = {
	.name = "mcp",
	.arguments = "",
	.summary = "Serve the Model Context Protocol on standard input and output",
	.text = "For agents that start their servers: Claude Desktop, Claude Code, Cursor, VS "
		"Code.\n"
		"With no daemon at the default socket, one is started for as long as this runs.\n",
	.options = {rows, ARRAY_SIZE(rows)},
	.values_size = sizeof(struct mcp_options),
	.run = run,
};
