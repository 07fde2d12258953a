// SPDX-License-Identifier: Apache-2.0
// A hundred sandboxes at the same time. Prints how many gave the right answer.
import { Client, Sandbox } from 'millibox';

const client = new Client();

async function one(number) {
  const box = await Sandbox.create({ client, memory: '64Mi' });
  try {
    await box.runCode(`x = ${number}`);
    await box.files.write('n', String(number));
    return (await box.runCode("x, open('n').read()")).text;
  } finally {
    await box.close();
  }
}

const answers = await Promise.all(Array.from({ length: 100 }, (_, number) => one(number)));
console.log(answers.filter((text, number) => text === `(${number}, '${number}')`).length);
await client.close();
