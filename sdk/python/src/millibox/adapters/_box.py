# SPDX-License-Identifier: Apache-2.0
"""Which sandboxes an adapter takes, and how both kinds run code for it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, List, Mapping, Optional, Tuple, Type, Union

from .. import errors
from .._async._sandbox import AsyncSandbox
from .._models import Result
from .._sync._execution import Execution
from .._sync._sandbox import Sandbox
from ._text import text_of

AnySandbox = Union[Sandbox, AsyncSandbox]

#: Refusals of one program, which a model can write otherwise. All other errors are for the caller of the agent.
REFUSALS = (errors.InvalidParameterError, errors.PayloadTooLargeError)


def check_box(adapter: str, box: Any, kinds: Tuple[Type[Any], ...], reason: str = "") -> None:
    """Raise TypeError where an adapter is made with something else than it can use."""
    if isinstance(box, kinds):
        return
    wanted = " or ".join(f"millibox.{kind.__name__}" for kind in kinds)
    given = f"the class {box.__name__}" if isinstance(box, type) else type(box).__name__
    raise TypeError(f"{adapter} needs a {wanted}, and got {given}{reason and ': '}{reason}")


def refuse_others(others: Mapping[str, Any]) -> None:
    """Raise one of REFUSALS where a model gives arguments that the tool does not have."""
    for name in others:
        text = f"{name}: no such argument; the tool has one: code"
        raise errors.InvalidParameterError(400, {"error_detail": text, "field": name})


def run(
    box: Sandbox, code: Any, timeout: Optional[float], limit: int, others: Optional[Mapping[str, Any]] = None
) -> Tuple[str, Optional[Result]]:
    """What a model reads, and the result. @others: arguments that the tool does not have."""
    try:
        refuse_others(others or {})
        result = box.run_code(code, language="python", timeout=timeout)
    except REFUSALS as e:
        return f"[refused] {e}", None
    return text_of(result, limit), result


async def run_async(
    box: AnySandbox, code: Any, timeout: Optional[float], limit: int, others: Optional[Mapping[str, Any]] = None
) -> Tuple[str, Optional[Result]]:
    """The same for a framework with an event loop. A caller that is cancelled cancels the program."""
    try:
        refuse_others(others or {})
        if isinstance(box, AsyncSandbox):
            result = await box.run_code(code, language="python", timeout=timeout)
        else:
            result = await _run_in_thread(box, code, timeout)
    except REFUSALS as e:
        return f"[refused] {e}", None
    return text_of(result, limit), result


async def _run_in_thread(box: Sandbox, code: str, timeout: Optional[float]) -> Result:
    """A thread waits. It cannot be interrupted, so the program is: exactly this one, by its handle."""
    given_up = threading.Event()
    started: List[Execution] = []

    def work() -> Result:
        started.append(box.start_code(code, language="python", timeout=timeout))
        if given_up.is_set():
            started[0].kill()
        return started[0].wait()

    def give_up() -> None:
        given_up.set()
        for execution in started:
            execution.kill()

    waiting = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await asyncio.to_thread(give_up)
        # The thread ends with its program; its result is of no use.
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise
