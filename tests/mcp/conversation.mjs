// SPDX-License-Identifier: Apache-2.0
// The conversation of an agent on the default profile: list tools, run code, fail, fix it, write a file, run a
// command in the same session, read long output, find more tools. Says what it did as one JSON object.
import assert from 'node:assert/strict';

export const TOOLS = ['execute_code', 'exec_command', 'read_file', 'write_file', 'list_files', 'manage_session', 'read_output', 'more_tools'];

/** names: tools that the client sees; call(name, arguments): the text that its model sees. */
export async function converse(names, call) {
  assert.deepEqual([...names].sort(), [...TOOLS].sort());
  assert.match(await call('execute_code', { code: 'print(6 * 7)' }), /42/);
  const created = await call('manage_session', { action: 'create' });
  const session_id = created.match(/sess_\w+/)[0];
  assert.match(await call('execute_code', { session_id, code: 'total = sum(values)' }), /NameError/);
  assert.match(await call('execute_code', { session_id, code: 'values = [1, 2, 39]\nsum(values)' }), /42/);
  await call('write_file', { session_id, path: 'main.py', content: 'for i in range(9000): print("line", i)' });
  assert.match(await call('list_files', { session_id }), /main\.py/);
  assert.match(await call('read_file', { session_id, path: 'main.py' }), /range\(9000\)/);
  const long = await call('exec_command', { session_id, command: 'python3 main.py' });
  const execution_id = long.match(/exec_\d+_\w+/)[0];
  const offset = Number(long.match(/left out at offset (\d+)/)[1]);
  assert.ok(!long.includes('line 4321\n'));
  let text = '';
  for (let at = offset; at; at = Number(text.match(/give offset (\d+)/)?.[1])) {
    text = await call('read_output', { execution_id, offset: at });
    if (text.includes('line 4321')) break;
  }
  assert.match(text, /line 4321/);
  assert.match(await call('more_tools', { query: 'packages' }), /run_python/);
  assert.match(await call('more_tools', { call: 'run_python', arguments: { sandbox_id: session_id, code: 'print(6 * 7)' } }), /42/);
  await call('manage_session', { action: 'end', session_id });
  return { tools: names.length };
}
