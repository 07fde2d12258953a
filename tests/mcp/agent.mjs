// SPDX-License-Identifier: Apache-2.0
// What an agent does, with the official client: make a sandbox, write files, run, fail, correct, look at a figure,
// end. Usage: agent.mjs http URL | agent.mjs stdio PROGRAM ARGUMENT...
// Says what it did as one JSON object; throws where something is not as it must be.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { converse } from './conversation.mjs';
import { ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

function connect([kind, ...words]) {
  if (kind === 'http') return new StreamableHTTPClientTransport(new URL(words[0]));
  return new StdioClientTransport({ command: words[0], args: words.slice(1), env: process.env, stderr: 'inherit' });
}

const client = new Client({ name: 'agent', version: '1.0.0' });
const heard = [];
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => heard.push(n.params.uri));
client.setNotificationHandler(ResourceListChangedNotificationSchema, () => heard.push('list'));
await client.connect(connect(process.argv.slice(2)));

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const text = (result) => result.content.find((item) => item.type === 'text').text;

// The client checks structured results against the schemas of the list.
const tools = (await client.listTools()).tools;
assert.ok(tools.length === 8 && tools.every((t) => t.description && t.inputSchema.type === 'object'));

await converse(tools.map((t) => t.name), async (name, args) => text(await call(name, args)));

const made = await call('create_sandbox', { image: 'python-datascience' });
const sandbox_id = made.structuredContent.sandbox_id;
await client.subscribeResource({ uri: `sandbox://${sandbox_id}/result.csv` });

await call('write_file', { sandbox_id, path: 'data.csv', content: 'x,y\n1,2\n2,4\n3,9\n' });
const program = (column) => `import pandas\nd = pandas.read_csv("data.csv")\nprint(d["${column}"].sum())\nd.to_csv("result.csv")`;
await call('write_file', { sandbox_id, path: 'main.py', content: program('z') });

const failed = await call('exec_command', { sandbox_id, command: 'python3 main.py' });
assert.equal(failed.isError, true);
assert.match(text(failed), /KeyError: 'z'/);

await call('write_file', { sandbox_id, path: 'main.py', content: program('y') });
const progress = [];
const worked = await call('run_shell', { sandbox_id, code: 'python3 main.py' }, { onprogress: (p) => progress.push(p.message) });
assert.equal(worked.isError, false);
assert.equal(text(worked).split('\n')[0], '15');
assert.equal(progress.join(''), '15\n');
const link = worked.content.find((item) => item.type === 'resource_link');
assert.equal(link.uri, `sandbox://${sandbox_id}/result.csv`);
const read = await client.readResource({ uri: link.uri });
assert.match(read.contents[0].text, /3,9/);

const drawn = await call('execute_code', {
  session_id: sandbox_id,
  code: 'import pandas, matplotlib.pyplot as plt\nplt.plot(pandas.read_csv("data.csv")["y"])\nplt.show()',
});
const figure = drawn.content.find((item) => item.type === 'image');
assert.equal(figure.mimeType, 'image/png');
assert.equal(Buffer.from(figure.data, 'base64').subarray(1, 4).toString(), 'PNG');

const kept = await call('execute_code', { session_id: sandbox_id, code: 'plt.__name__' });
assert.match(text(kept), /matplotlib.pyplot/);

const stop = new AbortController();
const long = call('execute_code', { session_id: sandbox_id, code: 'import time; print("on", flush=True); time.sleep(60)' },
  { signal: stop.signal, onprogress: () => stop.abort('enough') });
await assert.rejects(long);

const prompt = await client.getPrompt({ name: 'debug_program', arguments: { code: program('z') } });
assert.match(prompt.messages[0].content.text, /pandas/);
const completed = await client.complete({ ref: { type: 'ref/resource', uri: 'sandbox://{id}/{path}' }, argument: { name: 'id', value: sandbox_id.slice(0, 8) } });
assert.ok(completed.completion.values.includes(sandbox_id));
await client.setLoggingLevel('error');

await call('terminate_sandbox', { sandbox_id });
assert.ok(heard.includes(`sandbox://${sandbox_id}/result.csv`) && heard.includes('list'), JSON.stringify(heard));
await client.close();
console.log(JSON.stringify({ tools: tools.length, heard: heard.length }));
