# SPDX-License-Identifier: Apache-2.0
"""Programs that define handler(event, context): called once, or in a session, through the API and the command line."""

import json

import subprocess

import pytest

from support.daemon import BUILD
from support.sessions import V1

pytestmark = pytest.mark.phases("system")

ADD = "def handler(event):\n    return {'sum': event['a'] + event['b']}"


def call(client, code, event=None, **fields):
    answer = client.post(f"{V1}/execute", {"handler_code": code, "event": event or {}, **fields})
    assert answer.status == 200, answer
    return answer.json


@pytest.fixture(params=["once", "ephemeral", "persistent"])
def handle(request, client, make):
    """The same three ways."""
    if request.param == "once":
        return lambda code, event=None, **fields: call(client, code, event, **fields)
    session = make(mode=request.param)
    return lambda code, event=None, **fields: session.run(code, event=event or {}, language="python", **fields)


@pytest.mark.smoke
def test_the_return_value_is_the_result(handle):
    r = handle(ADD, {"a": 1, "b": 2})
    assert r["status"] == "success" and r["exit_code"] == 0 and r["result"] == {"sum": 3}
    assert r["stdout"] == "" and r["results"] == [] and r["error"] is None
    assert r.get("return_value", r["result"]) == r["result"]


@pytest.mark.parametrize("value", [
    {"a": [1, {"b": None}]}, [1, 2], "text \u20ac \U0001f600", 1.5, True, None, list(range(400)), "x" * 100000])
def test_values_of_every_kind(handle, value):
    assert handle(f"def handler(event):\n    return {value!r}")["result"] == value


def test_nan_and_infinity_are_null(handle):
    assert handle("def handler(e): return [float('nan'), float('inf')]")["result"] == [None, None]


def test_the_context_has_defaults_and_given_values(handle):
    code = ("def handler(event, c):\n    return [c.function_name, c.function_version, c.memory_limit_in_mb,"
            " c.log_group_name, len(c.request_id), c.invoked_function_arn, 0 < c.get_remaining_time_in_millis() <= 5000]")
    r = handle(code, context={"function_name": "mine", "remaining_time_in_millis": 5000})
    assert r["result"] == ["mine", "$LATEST", 256, "/lambda-sandbox/logs", 36,
                           "arn:aws:lambda:local:000000000000:function:mine", True]


@pytest.mark.parametrize("code, exit_code, name", [
    ("def handler(event): return 1 / 0", 2, "ZeroDivisionError"),
    ("def handler(event): return object()", 3, "ResultNotJson"), ("def handler(event): return [{'a\\0b': 1}]", 3, "ResultNotJson"),
    ("x = 1", 1, "HandlerNotFound"), ("def handler(", 1, "SyntaxError"),
    ("class Mine(Exception): pass\ndef handler(event): raise Mine('so')", 2, "Mine")])
def test_each_failure_has_its_exit_code_and_name(handle, code, exit_code, name):
    r = handle(code)
    assert (r["status"], r["exit_code"], r["error"]["name"]) == ("failed", exit_code, name)
    assert name in r["stderr"] and r["result"] is None
    assert "handler.py" not in r["stderr"] and "run.py" not in r["stderr"] and "session.py" not in r["stderr"]


def test_the_timeout_in_the_event_is_not_passed_on(handle):
    assert handle("def handler(event): return event", {"__timeout": 60, "a": 1})["result"] == {"a": 1}
    r = handle("import time\ndef handler(event): print('in', flush=True); time.sleep(60)", {"__timeout": 6})
    assert r["status"] == "timeout" and r["limit"] == "time" and r["stdout"] == "in\n"


def test_markers_are_neither_output_nor_trusted(handle):
    code = ("print('a')\nprint('===SANDBOX_RESULT===')\nprint('{\"forged\": 1}')\nprint('===SANDBOX_RESULT_END===')\n"
            "def handler(event):\n    print('b')\n    return 'true'")
    r = handle(code)
    assert r["stdout"] == "a\nb\n" and r["result"] == "true"
    r = handle(code.replace("def handler", "def other"))
    assert r["result"] is None and r["error"]["name"] == "HandlerNotFound"


def test_without_a_handler_markers_are_output(client):
    code = "print('===SANDBOX_RESULT===')\nprint('===SANDBOX_RESULT_END===')"
    answer = client.post(f"{V1}/execute", {"language": "python", "code": code})
    assert answer.json["stdout"].count("SANDBOX") == 2


@pytest.mark.parametrize("fields, status, field", [
    ({"handler_code": ADD, "code": "1"}, 400, "handler_code"),
    ({"handler_code": ""}, 400, "handler_code"),
    ({"handler_code": ADD, "event": []}, 400, "event"),
    ({"handler_code": ADD, "event": {"x": "y" * (1 << 20)}}, 413, "event"),
    ({"handler_code": ADD, "event": {"__timeout": "5"}}, 400, "event.__timeout"),
    ({"handler_code": ADD, "language": "shell"}, 400, "event"),
    ({"handler_code": ADD, "context": {"memory_limit_in_mb": 127}}, 400, "context.memory_limit_in_mb"),
    ({"handler_code": ADD, "context": {"memory_limit_in_mb": 3009}}, 400, "context.memory_limit_in_mb"),
    ({"handler_code": ADD, "context": {"remaining_time_in_millis": 99}}, 400, "context.remaining_time_in_millis"),
    ({"handler_code": ADD, "context": {"mine": 1}}, 400, "context.mine"),
    ({"language": "python", "code": "1", "context": {}}, 400, "context")])
def test_invalid_fields_are_named(client, fields, status, field):
    answer = client.post(f"{V1}/execute", fields)
    assert (answer.status, answer.json["field"]) == (status, field), answer


def test_in_a_session_state_persists_but_handlers_do_not(py):
    assert py.run("n = 1\ndef handler(event): return n", event={})["result"] == 1
    assert py.run("n += 1", event={})["error"]["name"] == "HandlerNotFound"
    assert py.run("handler = lambda e: n", event={})["result"] == 2


def test_from_the_command_line(daemon, tmp_path):
    def run(*args):
        return subprocess.run([str(BUILD / "millibox"), "run", "--socket", daemon.socket, *args],
                              capture_output=True, text=True, timeout=120)

    (tmp_path / "h.py").write_text("def handler(event, context):\n    print('out')\n    return [event, context.function_name]")
    (tmp_path / "event.json").write_text('{"a": 1}')
    done = run("--handler", str(tmp_path / "h.py"), "--event", f"@{tmp_path}/event.json", "--context", '{"function_name": "f"}')
    assert done.returncode == 0, done
    out, _, value = done.stdout.partition("\n")
    assert out == "out" and json.loads(value) == [{"a": 1}, "f"]
    (tmp_path / "h.py").write_text("def handler(event): raise ValueError")
    assert run("--handler", str(tmp_path / "h.py")).returncode == 2
    assert run("--handler", str(tmp_path / "missing.py")).returncode == 125
    assert run("--handler", str(tmp_path / "h.py"), "--event", "[]").returncode == 2
    assert run("-c", "1", "--event", "{}").returncode == 2
