// SPDX-License-Identifier: Apache-2.0
// A file of 1 GiB in and out. Prints both sizes, and the peak of this process's memory in KiB.
import { Client, Sandbox } from 'millibox';

const PIECES = 1024;
const piece = Buffer.alloc(1 << 20);
for (let at = 0; at < piece.length; at++) piece[at] = at & 255;

async function* source() {
  for (let number = 0; number < PIECES; number++) yield piece;
}

const client = new Client();
const box = await Sandbox.create({ client, memory: '3Gi', disk: '1200Mi' });
const { size } = await box.files.write('large', source());
let at = 0;
for await (const part of box.files.stream('large')) {
  const start = at % piece.length;
  const same = Math.min(part.length, piece.length - start);
  const equal = part.subarray(0, same).equals(piece.subarray(start, start + same)) && part.subarray(same).equals(piece.subarray(0, part.length - same));
  if (!equal) throw new Error(`another byte after ${at}`);
  at += part.length;
}
await box.close();
await client.close();
console.log(size, at, process.resourceUsage().maxRSS);
