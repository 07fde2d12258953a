# SPDX-License-Identifier: Apache-2.0
"""The conversation of conversation.mjs with LangChain's MCP adapter. Usage: langchain_conversation.py URL"""

import asyncio
import json
import re
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def converse(url):
    client = MultiServerMCPClient({"millibox": {"transport": "streamable_http", "url": url}})
    tools = {tool.name: tool for tool in await client.get_tools()}

    async def say(name, **arguments):
        try:
            said = await tools[name].ainvoke(arguments)
        except Exception as e:  # noqa: BLE001 - the adapter raises what the model is to read
            return str(e)
        return said if isinstance(said, str) else "\n".join(part.get("text", "") for part in said)

    assert "42" in await say("execute_code", code="print(6 * 7)")
    sid = re.search(r"sess_\w+", await say("manage_session", action="create"))[0]
    assert "NameError" in await say("execute_code", session_id=sid, code="total = sum(values)")
    assert "42" in await say("execute_code", session_id=sid, code="values = [1, 2, 39]\nsum(values)")
    await say("write_file", session_id=sid, path="main.py", content='for i in range(9000): print("line", i)')
    long = await say("exec_command", session_id=sid, command="python3 main.py")
    ident, offset = re.search(r"exec_\d+_\w+", long)[0], int(re.search(r"left out at offset (\d+)", long)[1])
    assert "line 2000\n" in await say("read_output", execution_id=ident, offset=offset)
    assert "run_python" in await say("more_tools", query="packages")
    assert "42" in await say("more_tools", call="run_python", arguments={"sandbox_id": sid, "code": "print(6 * 7)"})
    await say("manage_session", action="end", session_id=sid)
    return {"tools": len(tools)}


print(json.dumps(asyncio.run(converse(sys.argv[1]))))
