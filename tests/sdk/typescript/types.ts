// SPDX-License-Identifier: Apache-2.0
// Uses that must compile strictly, and uses that must not.
import { Client, Sandbox, errors, type Event, type Result } from "millibox";

export async function main(signal: AbortSignal): Promise<void> {
  await using box = await Sandbox.create({ memory: "64Mi", env: { A: 1, B: true, C: "c" }, client: new Client({ timeout: 5 }) });
  const result: Result = await box.runCode("1", { signal, onStdout: (text) => text.trim() });
  const picture: Uint8Array | null = result.png;
  for await (const event of box.stream("1")) {
    const each: Event = event;
    if (each.kind === "end") each.result?.raiseForStatus().text.trim();
  }
  try {
    await box.files.write("a", (async function* () { yield new Uint8Array(1); })());
  } catch (error) {
    if (error instanceof errors.InvalidParameterError) error.field?.trim();
  }
  // @ts-expect-error: a time limit is a number
  await box.runCode("1", { timeout: "1" });
  // @ts-expect-error: there is no such option
  await box.runCode("1", { memroy: 1 });
  // @ts-expect-error: sandboxes are made by create and connect
  new Sandbox();
  // @ts-expect-error: there may be no figure
  picture.length;
}
