// SPDX-License-Identifier: Apache-2.0
// A result as the text that a model reads.
import type { Bundle, Result } from "./models.js";

/** Characters of one stream that a model is shown: enough to go on, and cheap. */
export const LIMIT = 8000;

/** Output, what was displayed, value and error; the middle of long output is left out. */
export function textOf(result: Result, limit: number = LIMIT): string {
  const isFigure = (bundle: Bundle): boolean => "image/png" in bundle;
  const figures = result.results.filter(isFigure).length;
  const shown = result.results.filter((bundle) => !isFigure(bundle)).map((bundle) => bundle["text/plain"] ?? "");
  const parts = [
    shorten(result.stdout, limit),
    shorten(shown.filter(Boolean).join("\n"), limit),
    figures ? `[${figures} figure(s)]` : "",
    result.stderr ? `[stderr] ${shorten(result.stderr, limit)}` : "",
    result.ok || result.error ? "" : `[${result.status}] ${result.limit ?? `exit status ${result.exitCode}`}`,
  ];
  return parts.filter(Boolean).map((part) => part.replace(/\n+$/, "")).join("\n") || "(no output)";
}

/** The beginning and the end of a long text. */
function shorten(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const half = Math.floor(limit / 2);
  return `${text.slice(0, half)}\n[... ${text.length - 2 * half} characters left out ...]\n${text.slice(-half)}`;
}
