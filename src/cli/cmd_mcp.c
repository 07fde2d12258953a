/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/command.h"

#include "base/fd.h"
#include "cli/client/bridge.h"
#include "cli/client/interrupt.h"
#include "cli/common_options.h"
#include "cli/message.h"
#include "cli/start_daemon.h"
#include "client/millibox.h"

struct mcp_options {
	struct daemon_options at;
};

/* Only the protocol writes to stdout. */
static int run_mcp(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct mcp_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->at);
	cleanup_close int interrupt_fd = interrupt_open(err);
	cleanup_own_daemon struct own_daemon *own = NULL;

	if (interrupt_fd < 0)
		return -1;
	if (start_daemon_find(&options->at, client, interrupt_fd, &own, err) < 0)
		return exit_status_of_failure(interrupt_fd, err);
	if (own)
		message_show(
			"no daemon listens at the default socket; started one for this command");
	return bridge_run(client, !own, interrupt_fd, err) < 0 ? CLI_ERROR : CLI_OK;
}

#define AT(member) offsetof(struct mcp_options, member)

static const struct option_row rows[] = {
	ISOLATION_ROW(AT(at)),
	ENDPOINT_ROWS(AT(at)),
};

COMMAND(mcp, "mcp", "", "Serve the Model Context Protocol on standard input and output", run_mcp,
        rows, struct mcp_options,
        .text = "For MCP clients that start their servers: Claude Desktop, Claude Code, "
                "Cursor, VS Code. If no daemon listens at the default socket, one is started "
                "for this command.\n");
