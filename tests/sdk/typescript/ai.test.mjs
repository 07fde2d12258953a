// SPDX-License-Identifier: Apache-2.0
// The tool for the Vercel AI SDK, with the real package and a scripted model.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { generateText, stepCountIs } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { Client, Sandbox } from 'millibox';
import { codeTool } from 'millibox/ai';

const client = new Client();
let box;
before(async () => { box = await Sandbox.create({ client }); });
after(async () => {
  await box.close();
  await client.close();
});

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };

function callOf(code, number) {
  const content = [{ type: 'tool-call', toolCallId: `call${number}`, toolName: 'python', input: JSON.stringify({ code }) }];
  return { finishReason: { unified: 'tool-calls', raw: undefined }, usage, content, warnings: [] };
}

// A model that runs programs, and then answers with what the last one printed.
function modelOf(programs) {
  const seen = [];
  const model = new MockLanguageModelV3({
    doGenerate: async ({ prompt, tools }) => {
      const last = prompt.at(-1);
      if (last.role === 'tool') seen.push(last.content[0].output.value);
      const code = programs[seen.length];
      if (code !== undefined) return callOf(code, seen.length);
      const text = `${tools[0].name}: ${seen.at(-1)}`;
      return { finishReason: { unified: 'stop', raw: undefined }, usage, content: [{ type: 'text', text }], warnings: [] };
    },
  });
  return { model, seen };
}

test('a conversation', async () => {
  const { model, seen } = modelOf(['x = 41', "print('out')\nx + 1", '1 / 0', "print('y' * 20000)"]);
  const tools = { python: codeTool(box) };
  const { text } = await generateText({ model, tools, prompt: 'compute', stopWhen: stepCountIs(6) });
  assert.deepEqual(seen.slice(0, 2), ['(no output)', 'out\n42']);
  assert.match(seen[2], /ZeroDivisionError: division by zero/);
  assert.match(seen[3], /\[\.\.\. 12001 characters left out \.\.\.\]/);
  assert.match(text, /^python: yyy/);
  const offered = model.doGenerateCalls[0].tools[0];
  assert.deepEqual([offered.name, offered.inputSchema.required], ['python', ['code']]);
  assert.match(offered.description, /python code in an isolated sandbox/);
});

test('limits and other languages', async () => {
  const shell = codeTool(box, { language: 'shell', timeout: 6, limit: 10 });
  const run = (code) => shell.execute({ code }, { toolCallId: '1', messages: [] });
  assert.equal(await run('echo $((6 * 7))'), '42');
  assert.equal(await run('exit 3'), '[failed] exit status 3');
  assert.match(await run('sleep 600'), /^\[timeout\] time/);
});

test('an aborted call cancels the program', async () => {
  const abort = new AbortController();
  const call = codeTool(box, { timeout: 600 }).execute({ code: "open('/workspace/up', 'w')\nimport time; time.sleep(600)" },
    { toolCallId: '1', messages: [], abortSignal: abort.signal });
  const ended = assert.rejects(call, { name: 'AbortError' });
  while (!(await box.files.exists('up'))) await new Promise((resolve) => setTimeout(resolve, 10));
  abort.abort();
  await ended;
  const [execution] = await box.executions();
  assert.equal((await client.execution(execution.execution_id).wait()).status, 'cancelled');
});
