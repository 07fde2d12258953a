# SPDX-License-Identifier: Apache-2.0
"""A tool of the OpenAI Agents SDK that runs Python code in a sandbox. Needs openai-agents.

async with millibox.AsyncSandbox() as box:
    agent = Agent(name="analyst", tools=[python_tool(box)])
"""

from __future__ import annotations

from typing import Any, Optional

from agents import ModelBehaviorError, RunContextWrapper, function_tool

from .._async._sandbox import AsyncSandbox
from .._sync._sandbox import Sandbox
from ._box import AnySandbox, check_box, run_async
from ._text import DESCRIPTION, LIMIT


def python_tool(
    box: AnySandbox, *, name: str = "run_python", timeout: Optional[float] = None, limit: int = LIMIT
) -> Any:
    """A function tool that returns text for a model. With a `Sandbox` the program runs in a thread. An agent that is
    cancelled cancels the program. A lost sandbox or daemon is an exception of the run: a model cannot help it."""
    check_box("python_tool of the OpenAI Agents SDK", box, (Sandbox, AsyncSandbox))

    def explain(context: RunContextWrapper[Any], error: Exception) -> str:
        if isinstance(error, ModelBehaviorError):
            return f"[refused] {error}"
        raise error

    async def run(code: str) -> str:
        return (await run_async(box, code, timeout, limit))[0]

    return function_tool(
        run,
        name_override=name,
        description_override=DESCRIPTION,
        use_docstring_info=False,
        failure_error_function=explain,
    )
