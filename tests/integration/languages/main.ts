// SPDX-License-Identifier: Apache-2.0
const fs = require('fs');
const { spawn } = require('child_process');
import { answer } from './util';

function sort(): void {
  const numbers = new Uint32Array(1000000);
  let x: number = 42;
  for (let i = 0; i < numbers.length; i++) numbers[i] = x = (Math.imul(x, 1664525) + 1013904223) >>> 0;
  numbers.sort();
  console.log(numbers[500000], numbers[999999]);
}

function bomb(): void {
  spawn('sleep', ['100']).on('error', () => {});
  setImmediate(bomb);
}

const modes: Record<string, () => void> = {
  hello: () => console.log('hello', answer()),
  stdin: () => process.stdout.write(fs.readFileSync(0)),
  env: () => console.log(process.env.WORD, process.cwd()),
  args: () => process.stdout.write(process.argv.slice(3).map((word: string) => `[${word}]`).join('') + fs.readFileSync('data.txt')),
  signal: () => process.kill(process.pid, 'SIGKILL'),
  exit: () => process.exit(3),
  error: () => { throw new Error('on purpose'); },
  timeout: () => { for (;;); },
  memory: () => { for (const kept: Uint8Array[] = [];;) kept.push(Buffer.alloc(8 << 20, 'x')); },
  fork: bomb,
  unicode: () => console.log('grüße 日本語 🎉'),
  output: () => { for (let i = 0; i < 16384; i++) console.log('x'.repeat(63)); },
  sort,
};
modes[process.argv[2]!]!();
