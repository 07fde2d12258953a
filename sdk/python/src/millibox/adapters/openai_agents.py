# SPDX-License-Identifier: Apache-2.0
"""A tool of the OpenAI Agents SDK that runs Python code in a sandbox. Needs openai-agents.

async with millibox.AsyncSandbox() as box:
    agent = Agent(name="analyst", tools=[python_tool(box)])
"""

from __future__ import annotations

from typing import Any, Optional

from agents import function_tool

from .._async._sandbox import AsyncSandbox
from ._text import DESCRIPTION, LIMIT, text_of


def python_tool(
    box: AsyncSandbox, *, name: str = "run_python", timeout: Optional[float] = None, limit: int = LIMIT
) -> Any:
    """A function tool that returns text for a model. An agent that is cancelled cancels the program."""

    async def run(code: str) -> str:
        return text_of(await box.run_code(code, timeout=timeout), limit)

    return function_tool(run, name_override=name, description_override=DESCRIPTION, use_docstring_info=False)
