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

static void own_daemon_endp(struct own_daemon **d)
{
	own_daemon_end(*d);
}

/* Only the protocol writes to stdout. */
static int run_mcp(const void *values, const struct args *args attr_unused, struct error *err)
{
	const struct mcp_options *options = values;
	cleanup_daemon struct millibox_client *client = daemon_open(&options->at);
	cleanup_close int interrupt_fd = -1;
	attr_cleanup(own_daemon_endp) struct own_daemon *own = NULL;
	const char *address = NULL;
	int found;

	if (start_daemon_check(&options->at, err) < 0)
		return -1;
	found = millibox_find(client, &address);
	if (found < 0)
		return daemon_fail(client, err);
	if (found && start_daemon_found(&options->at, client, err) < 0)
		return -1;
	interrupt_fd = interrupt_open(err);
	if (interrupt_fd < 0)
		return -1;
	if (!found) {
		own = start_daemon(&options->at, interrupt_fd, err);
		if (!own)
			return -1;
		message_show("no daemon listens at %s; started one for this command", address);
		(void)millibox_set_socket(client, own_daemon_socket(own));
	}
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
