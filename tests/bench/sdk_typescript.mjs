// SPDX-License-Identifier: Apache-2.0
// Usage: sdk_typescript.mjs SDK ROUNDS, with MILLIBOX_SOCKET
//
// Requests of the SDK and the same requests by node:http, one after the other, over one kept Unix connection each, so
// that both meet the same load. The overhead is the difference of the medians; the goal is 0.5 ms. The processor time
// of the client does not depend on what else the machine does, and decides.
import { Agent, request } from 'node:http';
import { pathToFileURL } from 'node:url';

const GOAL_MS = 0.5;
const WARM = 50;
const { Client, Sandbox } = await import(pathToFileURL(process.argv[2]));
const rounds = Number(process.argv[3]);
const agent = new Agent({ keepAlive: true });

function raw(method, path, body, accept) {
  return new Promise((resolve, reject) => {
    const content = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = content ? { 'Content-Type': 'application/json', 'Content-Length': content.length } : {};
    if (accept) headers.Accept = accept;
    const sent = request({ socketPath: process.env.MILLIBOX_SOCKET, agent, method, path, headers }, (answer) => {
      const pieces = [];
      answer.on('data', (piece) => pieces.push(piece));
      answer.on('end', () => resolve(Buffer.concat(pieces)));
    });
    sent.on('error', reject);
    sent.end(content);
  });
}

const rawJson = async (...words) => JSON.parse(await raw(...words));
const rawLines = async (...words) => (await raw(...words)).toString().trim().split('\n').map((line) => JSON.parse(line));

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

// Milliseconds of each work, in turns: by the clock, and of the processor.
async function alternate(...works) {
  const times = works.map(() => ({ wall: [], used: [] }));
  for (let round = 0; round < rounds + WARM; round++) {
    for (const [at, work] of works.entries()) {
      const begin = performance.now();
      const used = process.cpuUsage();
      await work();
      const { user, system } = process.cpuUsage(used);
      if (round < WARM) continue;
      times[at].wall.push(performance.now() - begin);
      times[at].used.push((user + system) / 1000);
    }
  }
  return times;
}

async function report(name, ...works) {
  globalThis.gc?.();
  const [plain, sdk] = await alternate(...works);
  const wall = [median(plain.wall), median(sdk.wall)];
  const over = median(sdk.used) - median(plain.used);
  const signed = (value) => `${value < 0 ? '' : '+'}${value.toFixed(3)}`;
  console.log(`| ${name} | ${wall[0].toFixed(3)} | ${wall[1].toFixed(3)} | ${signed(wall[1] - wall[0])} | ${signed(over)} | ${over <= GOAL_MS ? 'yes' : 'NO'} |`);
  return over;
}

console.log(`Node.js ${process.versions.node}, ${rounds} rounds, medians in ms\n`);
console.log('| request | raw | SDK | overhead | of the processor | at most 0.5 |\n| --- | --- | --- | --- | --- | --- |');
const client = new Client();
const box = await Sandbox.create({ client });
await box.files.write('f', new Uint8Array(1000));
const session = `/api/v1/sessions/${box.id}`;
const program = { language: 'python', code: 'print(42)' };
const overheads = [
  await report('health', () => rawJson('GET', '/api/v1/health'), () => client.health()),
  await report('a fresh box', () => rawJson('POST', '/api/v1/execute', program), () => client.runCode(program.code, { language: 'python' })),
  await report('a line in a sandbox', () => rawLines('POST', `${session}/execute`, { code: '1' }, 'application/x-ndjson'), () => box.runCode('1')),
  await report('read a small file', () => raw('GET', `${session}/files/f`), () => box.files.read('f')),
];
await box.close();
await client.close();
agent.destroy();
process.exitCode = Math.max(...overheads) <= GOAL_MS ? 0 : 1;
