# SPDX-License-Identifier: Apache-2.0
"""A tool of LangChain and LangGraph that runs Python code in a sandbox. Needs langchain-core.

with millibox.Sandbox() as box:
    agent = create_agent(model, tools=[python_tool(box)])
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from langchain_core.tools import StructuredTool

from .._async._sandbox import AsyncSandbox
from .._models import Result
from .._sync._sandbox import Sandbox
from ._box import AnySandbox, check_box, run, run_async
from ._text import DESCRIPTION, LIMIT


def python_tool(
    box: AnySandbox, *, name: str = "run_python", timeout: Optional[float] = None, limit: int = LIMIT
) -> Any:
    """A tool whose content is text for a model, and whose artifact is the whole `Result`, or None for code that the
    daemon refused. With a `Sandbox` it can be called both ways, with an `AsyncSandbox` only asynchronously (`ainvoke`,
    `astream`). An asynchronous agent that is cancelled cancels the program."""
    check_box("python_tool of LangChain", box, (Sandbox, AsyncSandbox))

    # LangChain does not check a model's arguments against a schema of this kind.
    async def run_later(code: Any = None, **others: Any) -> Tuple[str, Optional[Result]]:
        return await run_async(box, code, timeout, limit, others)

    def run_now(code: Any = None, **others: Any) -> Tuple[str, Optional[Result]]:
        if isinstance(box, AsyncSandbox):
            raise TypeError(f"{name} has a millibox.AsyncSandbox: use ainvoke or astream, or a millibox.Sandbox")
        return run(box, code, timeout, limit, others)

    schema: Dict[str, Any] = {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "Python code"}},
        "required": ["code"],
    }
    return StructuredTool.from_function(
        run_now,
        run_later,
        name=name,
        description=DESCRIPTION,
        args_schema=schema,
        response_format="content_and_artifact",
    )
