# SPDX-License-Identifier: Apache-2.0
"""The Python SDK's adapters with the real frameworks, which tools/setup installs into .cache/sdk-python."""

import json
import os
import subprocess

import pytest

from support.daemon import ROOT

VENV = ROOT / ".cache/sdk-python"
pytestmark = [
    pytest.mark.phases("system"),
    pytest.mark.skipif(not (VENV / "complete").exists(), reason="the frameworks are not installed: tools/setup test"),
]


@pytest.fixture
def hold(daemon, tmp_path):
    """Run a conversation of frameworks.py. Return: what it saw."""
    def run(name):
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "sdk/python/src"), "MILLIBOX_SOCKET": daemon.socket,
               "PYTHONDONTWRITEBYTECODE": "1", "RAY_USAGE_STATS_ENABLED": "0", "OPENAI_API_KEY": "none", "HF_HUB_OFFLINE": "1"}
        script = ROOT / "tests/sdk/python/frameworks.py"
        done = subprocess.run([str(VENV / "bin/python"), str(script), name], capture_output=True, text=True, env=env, timeout=600,
                              cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_langchain(hold):
    seen = hold("langchain")
    assert seen["schema"] == ["code"] and seen["ids"] == ["0", "1", "2"]
    assert seen["texts"][:2] == ["(no output)", "42"] and seen["value"] == 42
    assert seen["texts"][2].startswith("out\n[stderr]") and "ZeroDivisionError" in seen["texts"][2]
    assert seen["later"] == "41" and seen["refused"].startswith("[refused]")
    *shown, sync = seen["async"]
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
    assert seen["complete"] == ["incomplete", "complete", "invalid"]


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
