# SPDX-License-Identifier: Apache-2.0
"""The Python SDK's adapters with the real frameworks, which tools/setup installs into .cache/sdk-python."""

import contextlib
import functools
import json
import os
import subprocess

import pytest

from support.daemon import ROOT
from support.registry import Registry, daemon_of, needs_pip, wheel

VENV = ROOT / ".cache/sdk-python"
pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not (VENV / "complete").exists(), reason="the frameworks are not installed: tools/setup test"),
]


def holder(daemon, tmp_path):
    @functools.lru_cache
    def run(name):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "sdk/python/src"), "MILLIBOX_SOCKET": daemon.socket,
               "PYTHONDONTWRITEBYTECODE": "1", "RAY_USAGE_STATS_ENABLED": "0", "OPENAI_API_KEY": "none", "HF_HUB_OFFLINE": "1"}
        script = ROOT / "tests/sdk/python/frameworks.py"
        done = subprocess.run([str(VENV / "bin/python"), str(script), name], capture_output=True, text=True, env=env, timeout=600,
                              cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture(scope="module")
def hold(daemon, tmp_path_factory):
    """Run a conversation of frameworks.py, once. Return: what it saw."""
    return holder(daemon, tmp_path_factory.mktemp("frameworks"))


@pytest.fixture(scope="module")
def hold_with_registry(tmp_path_factory):
    """The same with a daemon that installs tinypkg and needy."""
    with contextlib.closing(Registry()) as registry:
        registry.add(wheel("tinypkg"))
        registry.add(wheel("needy", requires=["tinypkg<2"]))
        with daemon_of(registry) as served:
            yield holder(served, tmp_path_factory.mktemp("packages"))


def test_langchain(hold):
    seen = hold("langchain")
    assert seen["schema"] == ["code"] and seen["ids"] == ["0", "1", "2"]
    assert seen["texts"][:2] == ["(no output)", "42"] and seen["value"] == 42
    assert seen["texts"][2].startswith("out\n[stderr]") and "ZeroDivisionError" in seen["texts"][2]
    assert seen["later"] == "41" and all(said.startswith("[refused] ") for said in seen["refused"])
    for said, text in zip(seen["refused"], ("code: must not be empty", "code: is missing", "cod: no such argument", "code: must be a string")):
        assert text in said
    *shown, misnamed, sync = seen["async"]
    assert "cod: no such argument" in misnamed
    assert shown == ["42", 42] and "AsyncSandbox" in sync and "ainvoke" in sync
    needs = "python_tool of LangChain needs a millibox.Sandbox or millibox.AsyncSandbox, and got"
    assert seen["wrong"] == [f"{needs} Client", f"{needs} the class Sandbox", f"{needs} NoneType"]


def test_langgraph(hold):
    said = ["what is it?", "(no output)", "'shown'\n42", "done"]
    assert hold("langgraph") == {"sync": said, "sync in a loop": said, "async": said}


def test_openai_agents(hold):
    seen = hold("openai_agents")
    conversation = {"answer": "the answer is 42", "seen": ["(no output)", "42"], "required": ["code"]}
    assert seen["both"] == [[conversation, "cancelled", 20]] * 2
    assert "not started" in seen["lost"]
    assert all("needs a millibox.Sandbox or millibox.AsyncSandbox" in said for said in seen["wrong"])


def test_smolagents(hold):
    seen = hold("smolagents")
    assert seen["answer"] == {"said": "HI", "n": 7}
    assert "in /workspace" in seen["first"] and "NameError" in seen["second"]
    assert seen["wrong"] == ["MilliboxExecutor needs a millibox.Sandbox, and got AsyncSandbox: smolagents runs code synchronously"]


def test_jupyter(hold):
    seen = hold("jupyter")
    assert seen["listed"] == "Millibox"
    assert seen["streams"] == [["stderr", "err\n"], ["stdout", "out\n"]]
    assert (seen["value"], seen["error"], seen["shell"]) == ("42", ["ZeroDivisionError", "division by zero"], "42\n")
    assert seen["figure"] == ["image/png", "text/plain"]
    assert (seen["interrupted"], seen["after"]) == ("KeyboardInterrupt", ["41"])
    assert seen["complete"] == ["incomplete", "complete", "invalid", "complete", "incomplete"]
    assert [kind for kind, _ in seen["silent"]] == ["status", "status"]


def test_jupyter_magics(hold):
    shown = list(hold("jupyter")["shown"].values())
    assert shown[:13] == [
        [["stdout", "41 41 /workspace $\n"]],
        [["execute_result", "[['a', 'b'], 3]"]],
        [["stdout", "/tmp\n"]],
        [["stdout", "/tmp\n"]],
        [["execute_result", "'/tmp'"]],
        [["stdout", "/workspace\n"]],
        [["stdout", "first\n"], ["display_data", "{'a': 1}"], ["display_data", "'b'"], ["execute_result", "41"]],
        [["stdout", "env: WORD=said\nsaid\n"]],
        [["stdout", "in a block\n"]],
        [["stdout", "Wrote a/b.txt\n"]],
        [["stdout", "line {x}\n"]],
        [["stdout", "len(obj, /)\n\nReturn the number of items in a container.\n"]],
        [["error", "failed: exit status 1"]],
    ]
    for (kind, text), said in zip((cell[0] for cell in shown[13:]), ("there is no magic %nonsense", "outside of blocks", "--index-url has no meaning here")):
        assert kind == "error" and said in text
    [[kind, timed]] = shown[16]
    assert shown[17:] == [[["display_data", "'shown'"]], [["execute_result", "';'"]]]
    assert kind == "stdout" and timed.startswith("counted\nCPU time: ") and "wall time" in timed


def test_jupyter_completes(hold):
    seen = hold("jupyter")
    assert seen["matches"] == {"x.bit_l": ["x.bit_length"], "import collections.a": ["import collections.abc"],
                               "from os import getcwd": ["from os import getcwd", "from os import getcwdb"], "%cd": ["%cd"],
                               "pri": ["print"], "nothing.x": []}
    assert [found["found"] for found in seen["found"]] == [True, True, False]
    assert seen["found"][1]["data"]["text/plain"].startswith("len(obj, /)\n\nReturn the number")


def test_jupyter_shows_a_traceback_once(hold):
    seen = hold("jupyter")
    trace = "Traceback (most recent call last):\n"
    (stderr, err), (error, text) = seen["traceback"]
    assert (stderr, err, error) == ("stderr", "err\n", "error") and text.count(trace) == 1 and "    1/0\n    ~^~\n" in text
    # One that the program prints is its output.
    [[stderr, text]] = seen["printed"]
    assert stderr == "stderr" and text.startswith(trace)


def test_jupyter_after_a_loss(hold):
    seen = hold("jupyter")
    (killed, again) = seen["lost"]
    assert killed[0][0] == "stderr" and "variables" in killed[0][1] and again == [["stdout", "again\n"]]
    state, ended, anew = seen["ended"]
    assert state == "terminated" and ended[0][0] == "error" and "next cell gets a new one" in ended[0][1]
    assert anew == [["execute_result", "1"]]


def test_jupyter_help():
    env = {**os.environ, "PYTHONPATH": str(ROOT / "sdk/python/src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [str(VENV / "bin/python"), "-m", "millibox.jupyter"]
    shown = subprocess.run([*command, "--help"], capture_output=True, text=True, env=env, timeout=60)
    assert shown.returncode == 0 and "millibox.jupyter install" in shown.stdout and len(shown.stdout.splitlines()) < 40
    alone = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60)
    assert alone.returncode == 2 and "expected a command: install" in alone.stderr


@needs_pip
def test_jupyter_installs_packages(hold_with_registry):
    missing, quiet, command, there, written, required, failed, quietly, after, listed = [
        shown for cell, shown in hold_with_registry("jupyter_packages").items() if cell != "listed"]
    assert "ModuleNotFoundError" in missing[0][1]
    assert quiet == [["execute_result", "'1.0'"]]
    assert command[0][0] == "stdout" and "Successfully installed needy" in command[0][1] and command[1] == ["execute_result", "1"]
    assert "already: pip" in there[0][1] and "NAME==VERSION" in there[0][1]
    assert written == [["stdout", "Wrote needs.txt\n"]] and required == []
    assert [kind for kind, _ in failed] == ["stdout", "error"] and failed[1][1].startswith("Sandbox.InstallFailed: pip: cannot install no-such-package")
    assert [kind for kind, _ in quietly] == ["stderr", "error"] and "No matching distribution" in quietly[0][1]
    assert after == [["execute_result", "1"]] and listed == [["stdout", "1\n"]]


@needs_pip
def test_smolagents_installs_what_tools_import(hold_with_registry):
    assert hold_with_registry("smolagents_packages") == {"value": "1.0"}


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.skipif(not (VENV / "bin/ray").exists(), reason="ray is not installed: tools/setup test")
def test_ray(hold):
    assert hold("ray") == {"first": "success", "second": "42\n", "upload": 5, "shell": "bytes", "count": 3,
                           "both": ["0\n", "1\n", "2\n", "3\n"], "actor": "1\n", "counted": 2, "ended": "success"}


def test_versions_are_pinned():
    """What was tested is in requirements.txt."""
    listed = subprocess.run([str(VENV / "bin/python"), "-m", "pip", "freeze"], capture_output=True, text=True, env={**os.environ})
    pinned = (ROOT / "tests/sdk/python/requirements.txt").read_text().splitlines()
    assert {line for line in pinned if "==" in line} <= set(listed.stdout.splitlines())
