# SPDX-License-Identifier: Apache-2.0
"""A LangChain tool that runs Python code in a sandbox. Needs langchain-core.

with millibox.Sandbox() as box:
    agent = create_agent(model, tools=[python_tool(box)])
"""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from langchain_core.tools import StructuredTool

from .._models import Result
from .._sync._sandbox import Sandbox
from ._text import DESCRIPTION, LIMIT, text_of


def python_tool(
    box: Sandbox, *, name: str = "run_python", timeout: Optional[float] = None, limit: int = LIMIT
) -> Any:
    """A tool whose content is text for a model, and whose artifact is the whole `Result`. An asynchronous agent
    calls it in a thread."""

    def run(code: str) -> Tuple[str, Result]:
        result = box.run_code(code, timeout=timeout)
        return text_of(result, limit), result

    schema: Dict[str, Any] = {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "Python code"}},
        "required": ["code"],
    }
    return StructuredTool.from_function(
        run, name=name, description=DESCRIPTION, args_schema=schema, response_format="content_and_artifact"
    )
