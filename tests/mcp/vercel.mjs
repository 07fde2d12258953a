// SPDX-License-Identifier: Apache-2.0
// The conversation with Vercel's MCP client. Usage: vercel.mjs URL
import { experimental_createMCPClient as createMCPClient } from '@ai-sdk/mcp';
import { converse } from './conversation.mjs';

const client = await createMCPClient({ transport: { type: 'http', url: process.argv[2] } });
const tools = await client.tools();
const call = async (name, args) => {
  const result = await tools[name].execute(args, { toolCallId: name, messages: [] });
  return result.content.filter((item) => item.type === 'text').map((item) => item.text).join('\n');
};
console.log(JSON.stringify(await converse(Object.keys(tools), call)));
await client.close();
