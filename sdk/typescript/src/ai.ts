// SPDX-License-Identifier: Apache-2.0
// A tool of the Vercel AI SDK that runs code in a sandbox. Needs the package `ai`.
import { type Tool, jsonSchema, tool } from "ai";
import type { Sandbox } from "./sandbox.js";
import { LIMIT, textOf } from "./text.js";

/** What a model gives the tool. */
export interface CodeInput {
  /** Code to run. */
  code: string;
}

/** Settings of the tool. */
export interface CodeToolOptions {
  /** Of the code; default: `python`. */
  language?: string;
  /** Seconds after which a program is ended. */
  timeout?: number;
  /** Characters of one stream that the model is shown; default: 8000. */
  limit?: number;
}

/** A tool whose output is text for a model: what the code prints, the value of its last expression, its error. A call
 * that is aborted cancels the program. */
export function codeTool(sandbox: Sandbox, options: CodeToolOptions = {}): Tool<CodeInput, string> {
  const { language = "python", timeout, limit = LIMIT } = options;
  return tool({
    description:
      `Runs ${language} code in an isolated sandbox and returns what it prints and the value of its last expression.` +
      " Variables, imports and files in /workspace stay from one call to the next. There is no network unless a" +
      " policy allows it.",
    inputSchema: jsonSchema<CodeInput>({
      type: "object",
      properties: { code: { type: "string", description: `${language} code` } },
      required: ["code"],
      additionalProperties: false,
    }),
    execute: async ({ code }, { abortSignal }) =>
      textOf(await sandbox.runCode(code, { language, timeout, signal: abortSignal }), limit),
  });
}
