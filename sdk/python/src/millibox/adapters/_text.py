# SPDX-License-Identifier: Apache-2.0
"""A result as the text that a model reads."""

from __future__ import annotations

from typing import Mapping

from .._models import Result

#: What a model is shown of one stream: enough to go on, and cheap.
LIMIT = 8000

DESCRIPTION = (
    "Runs Python code in an isolated sandbox and returns what it prints and the value of its last expression."
    " Variables, imports and files in /workspace stay from one call to the next. There is no network unless a policy"
    " allows it."
)


def text_of(result: Result, limit: int = LIMIT) -> str:
    """Output, what was displayed, value and error; the middle of long output is left out."""
    shown = [bundle["text/plain"] for bundle in result.results if "text/plain" in bundle and not is_figure(bundle)]
    figures = sum(is_figure(bundle) for bundle in result.results)
    parts = [
        shorten(result.stdout, limit),
        shorten("\n".join(shown), limit),
        f"[{figures} figure(s)]" if figures else "",
        f"[stderr] {shorten(result.stderr, limit)}" if result.stderr else "",
        "" if result.ok or result.error else f"[{result.status}] {result.limit or f'exit status {result.exit_code}'}",
    ]
    return "\n".join(part.rstrip("\n") for part in parts if part) or "(no output)"


def is_figure(bundle: Mapping[str, str]) -> bool:
    return "image/png" in bundle


def shorten(text: str, limit: int) -> str:
    """The beginning and the end of a long text."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
