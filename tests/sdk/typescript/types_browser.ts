// SPDX-License-Identifier: Apache-2.0
// The package without the types of Node.js.
import { Client, Sandbox } from "millibox/browser";

export async function main(): Promise<string> {
  const client = new Client({ url: "http://127.0.0.1:8000", apiKey: "key" });
  const box = await Sandbox.create({ client });
  await box.files.write("a", new Blob(["text"]));
  return (await box.runCode("1")).text;
}
