# SPDX-License-Identifier: Apache-2.0
"""What the adapters do with the real frameworks. Usage: frameworks.py NAME, with MILLIBOX_SOCKET; prints JSON of what was seen."""

import asyncio
import json
import os
import signal
import sys
import threading

import millibox


def refusals(make, *wrong):
    """What it says where it is made with something that it cannot use."""
    said = []
    for box in wrong:
        try:
            make(box)
            said.append(None)
        except TypeError as e:
            said.append(str(e))
    return said


def langchain():
    from langchain_core.messages import AIMessage
    from millibox.adapters.langchain import python_tool

    def call(tool, number, code):
        asked = AIMessage("", tool_calls=[{"name": tool.name, "args": {"code": code}, "id": str(number), "type": "tool_call"}])
        return asked.tool_calls[0]

    async def hold_async():
        async with millibox.AsyncSandbox() as box:
            tool = python_tool(box)
            await tool.ainvoke({"code": "x = 41"})
            message = await tool.ainvoke(call(tool, 7, "x + 1"))
            return [message.content, message.artifact.json, await tool.ainvoke({"cod": "1"}), *refusals(tool.invoke, {"code": "x"})]

    with millibox.Sandbox() as box:
        tool = python_tool(box)
        calls = ["x = 41", "x + 1", "print('out'); 1 / 0"]
        messages = [tool.invoke(call(tool, number, code)) for number, code in enumerate(calls)]
        later = asyncio.run(tool.ainvoke({"code": "x"}))
        return {"schema": sorted(tool.args), "texts": [message.content for message in messages], "later": later,
                "value": messages[1].artifact.json, "ids": [message.tool_call_id for message in messages],
                "refused": [tool.invoke(given) for given in ({"code": ""}, {}, {"cod": "1"}, {"code": 1})], "async": asyncio.run(hold_async()),
                "wrong": refusals(python_tool, millibox.Client(), millibox.Sandbox, None)}


def langgraph():
    """An agent's whole loop, with a model whose answers are fixed."""
    import warnings

    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langgraph.prebuilt import create_react_agent
    from millibox.adapters.langchain import python_tool

    warnings.simplefilter("ignore")

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools, **kw):
            return self

    def agent_with(box):
        codes = ["x = 20", "display('shown'); x * 2 + 2"]
        asked = [AIMessage("", tool_calls=[{"name": "run_python", "args": {"code": code}, "id": str(number), "type": "tool_call"}])
                 for number, code in enumerate(codes)]
        return create_react_agent(Scripted(messages=iter([*asked, AIMessage("done")])), [python_tool(box)])

    def contents(state):
        return [message.content for message in state["messages"] if message.content]

    async def hold_async(box):
        return contents(await agent_with(box).ainvoke({"messages": [("user", "what is it?")]}))

    async def main():
        async with millibox.AsyncSandbox() as box:
            return await hold_async(box)

    with millibox.Sandbox() as box:
        return {"sync": contents(agent_with(box).invoke({"messages": [("user", "what is it?")]})),
                "sync in a loop": asyncio.run(hold_async(box)), "async": asyncio.run(main())}


def openai_agents():
    from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
    from agents.models.interface import Model
    from millibox.adapters.openai_agents import python_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    set_tracing_disabled(True)

    class Scripted(Model):
        """A model whose answers are fixed."""

        codes = ["x = 20", "x * 2 + 2"]

        def __init__(self):
            self.seen = []

        async def get_response(self, system_instructions, input, *args, **kw):
            outputs = [item["output"] for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
            self.seen = outputs
            codes = self.codes
            if len(outputs) < len(codes):
                call = ResponseFunctionToolCall(arguments=json.dumps({"code": codes[len(outputs)]}), call_id=f"c{len(outputs)}",
                                                name="run_python", type="function_call")
                return ModelResponse(output=[call], usage=Usage(), response_id=None)
            text = ResponseOutputText(annotations=[], text=f"the answer is {outputs[-1]}", type="output_text")
            said = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            return ModelResponse(output=[said], usage=Usage(), response_id=None)

        def stream_response(self, *args, **kw):
            raise NotImplementedError

    async def ask(box):
        tool = python_tool(box)
        model = Scripted()
        done = await Runner.run(Agent(name="a", model=model, tools=[tool]), "what is it?")
        return {"answer": done.final_output, "seen": model.seen, "required": tool.params_json_schema["required"]}

    async def cancel(box, started):
        """A cancelled agent cancels its program; variables stay."""
        Scripted.codes = ["open('started', 'w').close()\nimport time\ntime.sleep(600)"]
        task = asyncio.ensure_future(ask(box))
        while not await started():
            await asyncio.sleep(0.05)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"

    async def hold_async():
        async with millibox.AsyncSandbox() as box:
            return [await ask(box), await cancel(box, lambda: box.files.exists("started")), (await box.run_code("x")).json]

    async def hold_sync():
        with millibox.Sandbox() as box:
            return [await ask(box), await cancel(box, lambda: asyncio.to_thread(box.files.exists, "started")), box.run_code("x").json]

    async def lose():
        """What a model cannot help ends the run."""
        box = millibox.Sandbox()
        try:
            await ask(box)
        except Exception as e:
            return str(e.__cause__ or e)

    both = []
    for hold in (hold_async, hold_sync):
        Scripted.codes = ["x = 20", "x * 2 + 2"]
        both.append(asyncio.run(hold()))
    return {"both": both, "lost": asyncio.run(lose()), "wrong": refusals(python_tool, millibox.AsyncClient(), object())}


def smolagents():
    from millibox.adapters.smolagents import MilliboxExecutor
    from smolagents import CodeAgent, Model, tool
    from smolagents.models import ChatMessage, MessageRole

    @tool
    def shout(text: str) -> str:
        """Make a text loud.

        Args:
            text: what to shout
        """
        return text.upper()

    class Scripted(Model):
        """A model whose answers are fixed."""

        steps = ["x = shout('hi')\nprint('in', __import__('os').getcwd())", "no_such_name", "final_answer({'said': x, 'n': given})"]

        def __init__(self):
            super().__init__()
            self.seen = []

        def generate(self, messages, **kw):
            self.seen.append(str(messages[-1].content))
            code = self.steps[len(self.seen) - 1]
            return ChatMessage(role=MessageRole.ASSISTANT, content=f"Thought: go on\n<code>\n{code}\n</code>")

    with millibox.Sandbox() as box:
        model = Scripted()
        agent = CodeAgent(tools=[shout], model=model, executor=MilliboxExecutor(box), verbosity_level=0)
        answer = agent.run("say hi", additional_args={"given": 7})
        return {"answer": answer, "first": model.seen[1], "second": model.seen[2], "wrong": refusals(MilliboxExecutor, millibox.AsyncSandbox())}


def smolagents_packages():
    """A tool that imports what the sandbox lacks; the daemon has a registry with tinypkg."""
    from millibox.adapters.smolagents import MilliboxExecutor
    from smolagents import Tool

    class Reader(Tool):
        name = "reader"
        description = "Reads a version."
        inputs = {}
        output_type = "string"

        def forward(self) -> str:
            import tinypkg

            return tinypkg.VALUE

    with millibox.Sandbox() as box:
        executor = MilliboxExecutor(box)
        executor.send_tools({"reader": Reader()})
        return {"value": executor("reader()").output}


def jupyter():
    """A kernel that is installed and started as Jupyter does."""
    return with_kernel(hold_conversation)


def jupyter_packages():
    """The daemon has a registry with tinypkg."""
    return with_kernel(install_packages)


def with_kernel(hold):
    import subprocess
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run([sys.executable, "-m", "millibox.jupyter", "install", "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        os.environ["JUPYTER_PATH"] = str(Path(prefix, "share/jupyter"))
        from jupyter_client.kernelspec import KernelSpecManager
        from jupyter_client.manager import start_new_kernel

        listed = KernelSpecManager().get_all_specs()["millibox"]["spec"]["display_name"]
        manager, client = start_new_kernel(kernel_name="millibox", startup_timeout=60)
        try:
            return {"listed": listed, **hold(manager, client, Notebook(client))}
        finally:
            client.stop_channels()
            manager.shutdown_kernel()


class Notebook:
    def __init__(self, client):
        self.client = client

    def run(self, code, **kw):
        """Return: the reply, and messages as their types and contents."""
        seen = []
        reply = self.client.execute_interactive(code, timeout=120, output_hook=lambda message: seen.append(message), **kw)
        return reply["content"], [(message["msg_type"], message["content"]) for message in seen]

    def shows(self, code):
        """Return: [kind, text] of what a cell shows, a stream as one."""
        shown = []
        for kind, content in self.run(code)[1]:
            if kind == "stream":
                kind, text = content["name"], content["text"]
            elif kind == "error":
                text = "\n".join(content["traceback"])
            elif "data" in content:
                text = content["data"]["text/plain"]
            else:
                continue
            if shown and shown[-1][0] == kind and kind.startswith("std"):
                shown[-1][1] += text
            else:
                shown.append([kind, text])
        return shown

    def ask(self, method, *words):
        """Return: the content of the reply to another message."""
        ident = getattr(self.client, method)(*words)
        while True:
            reply = self.client.get_shell_msg(timeout=60)
            if reply["parent_header"]["msg_id"] == ident:
                return reply["content"]

    def complete(self, code):
        found = self.ask("complete", code, len(code))
        return [code[: found["cursor_start"]] + match for match in found["matches"]]


def hold_conversation(manager, client, notebook):
    run = notebook.run

    def of(seen, kind):
        return [content for name, content in seen if name == kind]

    _, printed = run("import sys\nx = 41\nprint('out')\nprint('err', file=sys.stderr)")
    _, valued = run("x + 1")
    failed, wrong = run("1 / 0")
    _, figure = run("import matplotlib.pyplot as plt; plt.plot([1]); plt.show()")
    _, shell = run("%%bash\necho $((6 * 7))")
    started = threading.Event()

    def interrupt(message):
        if message["msg_type"] == "stream" and not started.is_set():
            started.set()
            manager.interrupt_kernel()

    stopped = client.execute_interactive("print('go', flush=True)\nimport time; time.sleep(600)", timeout=60, output_hook=interrupt)
    _, after = run("x")
    return {
        "streams": sorted((content["name"], content["text"]) for content in of(printed, "stream")),
        "value": of(valued, "execute_result")[0]["data"]["text/plain"],
        "error": [failed["ename"], of(wrong, "error")[0]["evalue"]],
        "figure": sorted(of(figure, "display_data")[0]["data"]),
        "shell": "".join(content["text"] for content in of(shell, "stream")),
        "interrupted": stopped["content"]["ename"],
        "after": [content["data"]["text/plain"] for content in of(after, "execute_result")],
        "complete": [notebook.ask("is_complete", code)["status"] for code in ("for i in x:", "x = 1", "x = = 1", "!ls", "%%bash")],
        "shown": {code: notebook.shows(code) for code in CELLS},
        "matches": {code: notebook.complete(code) for code in ("x.bit_l", "import collections.a", "from os import getcwd", "%cd", "pri", "nothing.x")},
        "found": [notebook.ask("inspect", code, len(code)) for code in ("len", "len([1, ", "nothing")],
        "traceback": notebook.shows("import sys\nprint('err', file=sys.stderr)\ndef f():\n    1/0\nf()"),
        "printed": notebook.shows("import traceback\ntry:\n    1/0\nexcept ZeroDivisionError:\n    traceback.print_exc()"),
        "lost": [notebook.shows("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), notebook.shows("!echo again")],
        "ended": [millibox.Client().request("POST", f"/api/v1/sessions/{millibox.Client().sandboxes('ready')[0].id}/terminate")["state"],
                  *(notebook.shows("1") for _ in range(2))],
        "silent": run("print(1); 2", silent=True)[1],
    }


#: In this order.
CELLS = [
    "!echo {x} $x $HOME '$$'",
    "names = !printf 'a\\nb'; exit 3\n[names, _exit_code]",
    "%cd /tmp",
    "!pwd",
    "%pwd",
    "%cd",
    "print('first'); display({'a': 1}, 'b'); x",
    "%matplotlib inline\n%env WORD=said\n!echo $WORD",
    "!mkdir -p a\nif True:\n    !echo in a block",
    "%%writefile a/b.txt\nline {x}",
    "%cat a/b.txt",
    "len?",
    "%%bash\ncd /tmp; false",
    "%nonsense",
    "if True:\n    %pip install tinypkg",
    "%pip install --index-url http://x y",
    "%%time\nprint('counted')",
    "display('shown'); x;  # and no more",
    "';'",
]


def install_packages(manager, client, notebook):
    return {code: notebook.shows(code) for code in (
        "import tinypkg",
        "x = 1\n%pip install -q tinypkg==1.0\nimport tinypkg\ntinypkg.VALUE",
        "!pip install needy\nimport needy; x",
        "%pip install -U pip",
        "%%writefile needs.txt\ntinypkg==1.0\n",
        "%pip install -q -r needs.txt",
        "%pip install no-such-package\nx = 2",
        "%pip install -q no-such-package",
        "x",
        "%pip list --disable-pip-version-check --format=freeze | grep -c tinypkg",
    )}


def ray():
    import ray

    from millibox.compat.rayai import remote

    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False,
             runtime_env={"env_vars": {"MILLIBOX_SOCKET": os.environ["MILLIBOX_SOCKET"], "PYTHONPATH": os.environ["PYTHONPATH"]}})
    try:
        first = ray.get(remote.execute_code.remote("x = 42", session_id="ray"))
        second = ray.get(remote.execute_code.remote("print(x)", session_id="ray"))
        upload = ray.get(remote.upload_file.remote("f", b"bytes", "ray"))
        shell = ray.get(remote.execute_shell.remote("cat f", session_id="ray"))
        stats = ray.get(remote.get_session_stats.remote("ray"))
        both = ray.get([remote.execute_code.remote(f"print({n})", session_id=f"ray{n}") for n in range(4)])
        for name in ["ray", *(f"ray{n}" for n in range(4))]:
            assert ray.get(remote.cleanup_session.remote(name))["status"] == "success"
        actor = remote.get_executor("actor", lifetime=None)
        ray.get(actor.execute_code.remote("y = 1"))
        same = ray.get(remote.get_executor("actor", lifetime=None).execute_code.remote("print(y)"))
        counted = ray.get(actor.get_session_stats.remote())["execution_count"]
        ended = ray.get(actor.cleanup.remote())
        return {"first": first["status"], "second": second["stdout"], "upload": upload["size"], "shell": shell["stdout"],
                "count": stats["execution_count"], "both": [done["stdout"] for done in both], "actor": same["stdout"],
                "counted": counted, "ended": ended["status"]}
    finally:
        ray.shutdown()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print(json.dumps(globals()[sys.argv[1]]()))
