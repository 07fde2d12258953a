# SPDX-License-Identifier: Apache-2.0
"""JavaScript through the API of a real daemon: programs, sessions, handlers, limits."""

import json
import os
import pathlib
import subprocess

import pytest

from support import host
from support.mcp import Mcp
from support.sessions import Session

NODE = pathlib.Path("/usr/bin/node")

pytestmark = [pytest.mark.phases("system"),
              pytest.mark.skipif(not NODE.exists(), reason=f"there is no {NODE}, and boxes see no other")]


@pytest.fixture
def js(client):
    made = Session(client, mode="persistent", language="javascript")
    yield made
    client.request("DELETE", made.path)


# Programs


def test_a_program_prints_and_ends(client):
    r = client.execute("javascript", "console.log('hello'); console.error('err')")
    assert (r["status"], r["exit_code"], r["stdout"], r["stderr"]) == ("success", 0, "hello\n", "err\n")


@pytest.mark.parametrize("name", ["js", "node", "nodejs"])
def test_other_names_of_the_language(client, name):
    assert client.execute(name, "console.log(1)")["stdout"] == "1\n"


@pytest.mark.parametrize("code, value", [
    ("6 * 7", 42), ("const a = [1, {b: 'c'}]; a", [1, {"b": "c"}]), ("await Promise.resolve('x')", "x"),
    ("const fs = require('fs'); typeof fs.readFileSync", "function"),
    ("import path from 'path';\nimport { sep as s, posix } from 'node:path';\nimport * as all from 'path';\n"
     "[path.join('a', 'b'), s, posix === all.posix]", ["a/b", "/", True]),
    ("const { createHash } = await import('crypto'); createHash('md5').update('a').digest('hex')",
     "0cc175b9c0f1b6a831c399e269772661"),
    ("async function main() { await 0; return 7 }\nmain()", 7), ("'é☃😀'", "é☃😀"), ("let x = 1", None), ("new Map([[1, 2]])", "Map(1) { 1 => 2 }"),
    ("export const a = 1; export default function f() {}; export { a as b }; Object.keys(module.exports)", []),
    ("[import.meta.url, __filename, __dirname]", ["file:///workspace/main.js", "/workspace/main.js", "/workspace"]),
    ("[require.main === module, typeof exports, this === globalThis]", [True, "object", True]),
])
def test_the_value_of_the_last_expression_is_the_result(client, code, value):
    r = client.execute("javascript", code)
    assert r["status"] == "success", r
    assert r["result"] == value


# A reader of 64-bit integers gets reals; keys that it refuses make a value text.
ODD_VALUES = [
    ("2 ** 53", 2**53), ("2 ** 63", 2.0**63), ("-(2 ** 63)", -(2.0**63)), ("[51090942171709440000]", [51090942171709440000.0]),
    ("2 ** 70", 2.0**70), ("1e300", 1e300), ("'x\\ud800'", "x\ufffd"), ("'a\\0b'", "a\0b"),
]


@pytest.mark.parametrize("code, value", ODD_VALUES)
def test_odd_numbers_and_texts_are_results(client, js, code, value):
    for r in (client.execute("javascript", code), js.run(code), call(client, f"exports.handler = () => ({code})", {})):
        assert r["status"] == "success" and r["result"] == value, r


@pytest.mark.parametrize("code", ["({ 'a\\0b': 1 })", "({ 'x\\ud800': 1, 'x\\udc00': 2 })"])
def test_an_object_with_odd_keys_is_text(client, js, code):
    for r in (client.execute("javascript", code), js.run(code)):
        assert r["status"] == "success" and r["result"].startswith("{ '") and len(r["results"]) == 1, r


def test_a_stack_has_frames_that_look_like_those_of_the_inspector(client, js):
    code = "class Session { post() { throw new Error('x') } }\nfunction inspector() { new Session().post() }\ninspector()"
    for r in (client.execute("javascript", code), js.run(code)):
        assert all(words in r["stderr"] for words in ("at Session.post (", "at inspector (")) and "node:" not in r["stderr"], r


def test_input_arguments_and_environment(client):
    code = """
        const lines = [];
        for await (const line of require('readline').createInterface({ input: process.stdin })) lines.push(line);
        console.log(lines.join('+'), process.argv.slice(2), process.env.COLOUR);
        """
    r = client.execute("javascript", code, stdin="a\né\n", args=["one", "zwei ☃"], env_vars={"COLOUR": "blue"})
    assert r["stdout"] == "a+é [ 'one', 'zwei ☃' ] blue\n", r
    assert client.execute("javascript", "require('fs').readFileSync(0, 'utf8')", stdin="typed")["result"] == "typed"
    assert client.execute("javascript", "require('fs').readFileSync(0, 'utf8')")["result"] == ""


@pytest.mark.parametrize("code, exit_code, signal", [
    ("process.exit(3)", 3, None), ("process.exitCode = 4", 4, None), ("process.on('exit', () => { process.exitCode = 5 })", 5, None),
    ("setTimeout(() => process.exit(6), 1); await new Promise(() => {})", 6, None), ("await new Promise(() => {})", 13, None),
    # Not awaited: Node.js does not wait for it either.
    ("async function main() { await new Promise(() => {}); }\nmain()", 0, None), ("process.exitCode = 7; new Promise(() => {})", 7, None),
    ("process.kill(process.pid, 'SIGKILL'); setTimeout(() => {}, 9999)", 137, 9), ("process.abort()", 134, 6),
])
def test_exit_codes_and_signals(client, code, exit_code, signal):
    r = client.execute("javascript", code)
    assert (r["exit_code"], r["signal"]) == (exit_code, signal), r


def test_an_error_names_the_line_of_the_program(client):
    r = client.execute("javascript", "// first\nfunction f() {\n  throw new TypeError('boo ☃')\n}\nf()")
    assert (r["status"], r["exit_code"]) == ("failed", 1)
    assert r["error"]["name"] == "TypeError" and r["error"]["value"] == "boo ☃"
    assert r["stderr"].startswith("/workspace/main.js:3\n  throw new TypeError('boo ☃')\n        ^\n\nTypeError: boo ☃\n    at f (/workspace/main.js:3:9)\n"
                                  "    at /workspace/main.js:5:1\n\nNode.js v"), r["stderr"]
    assert r["error"]["traceback"] == r["stderr"].split("\n\nNode.js")[0].splitlines()


@pytest.mark.parametrize("code, name, words", [
    ("let a = ;", "SyntaxError", "/workspace/main.js:1\nlet a = ;\n        ^\n\nSyntaxError: Unexpected token ';'\n"),
    ("import a from 'path';\n\nlet b = ]", "SyntaxError", "/workspace/main.js:3\nlet b = ]\n        ^\n\nSyntaxError: Unexpected token\n"),
    ("await Promise.reject(new RangeError('far'))", "RangeError", "RangeError: far\n    at /workspace/main.js:1:22\n"),
    ("setTimeout(() => { throw new Error('late') }, 1)", "Error", "Error: late\n    at Timeout._onTimeout (/workspace/main.js:1:26)"),
    ("Promise.reject(new Error('unheard')); 1", "Error", "Error: unheard\n    at /workspace/main.js:1:16"),
    ("throw 'words'", "String", "Uncaught:\nwords\n"),
    ("import 'nothing-of-that-name'", "Error", "Cannot find package 'nothing-of-that-name'"),
    ("require('./missing')", "Error", "Cannot find module './missing'"),
])
def test_uncaught_errors(client, code, name, words):
    r = client.execute("javascript", code)
    assert (r["status"], r["exit_code"], r["error"]["name"]) == ("failed", 1, name), r
    assert words in r["stderr"]


def test_files_are_modules(client):
    files = {"a.js": "exports.f = (x) => x + 1;", "b.mjs": "export const g = (x) => x * 2; export default 'b';",
             "c.js": "export const h = 3;", "d.json": '{"k": 4}'}
    code = """
        import b, { g } from './b.mjs';
        import { h } from './c.js';
        const { f } = require('./a.js');
        [f(1), g(2), b, h, require('./d.json').k, (await import('./a.js')).f(5)]
        """
    assert client.execute("javascript", code, files=files)["result"] == [2, 4, "b", 3, 4, 6]


def test_a_megabyte_of_output(client):
    r = client.execute("javascript", "process.stdout.write('x'.repeat(1e6)); console.log('end')")
    assert len(r["stdout"]) == 1000004 and r["stdout"].endswith("xend\n")


def test_children_inherit_streams_only(client):
    code = """
        const { spawnSync } = require('child_process');
        spawnSync('ls', ['/proc/self/fd'], { stdio: 'inherit' });
        """
    assert client.execute("javascript", code)["stdout"].split() == ["0", "1", "2", "3"]  # the last one is the listing itself


def test_limits(client):
    r = client.execute("javascript", "const a = []; for (;;) a.push(new Array(1e5).fill(a.length))", resources={"memory": "128Mi"})
    assert (r["status"], r["limit"]) == ("limit_exceeded", "memory") or r["limit"] == "memory", r
    r = client.execute("javascript", "for (;;);", timeout=1)
    assert r["status"] == "timeout", r
    code = """
        const { spawn } = require('child_process');
        let n = 0;
        (function more() { spawn('sleep', ['100']).on('error', () => process.exit(n > 0 ? 7 : 8)).on('spawn', () => { n++; more(); }); })();
        """
    r = client.execute("javascript", code, timeout=50)
    assert r["exit_code"] == 7, r


def test_threads_and_compilers_work(client):
    code = """
        const { Worker } = require('worker_threads');
        const one = await new Promise((r) => new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true }).on('message', r));
        const bytes = Buffer.from('0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b', 'hex');
        const { instance } = await WebAssembly.instantiate(bytes);
        let sum = 0;
        for (let i = 0; i < 3e6; i++) sum = (sum + i) % 1000003; // long enough to be compiled
        const zip = require('zlib');
        [one, instance.exports.add(2, 3), sum, zip.gunzipSync(zip.gzipSync('text')).toString()]
        """
    r = client.execute("javascript", code)
    assert r["result"] == [42, 5, 45, "text"] and r["denials"] == [], r


# Sessions


def test_state_stays(js):
    js.run("const x = 41; let y = { n: 1 }; var z = 1; function f(a) { return a + x } class C { m() { return 3 } }")
    js.run("import { join } from 'path'; const os = require('os')")
    assert js.run("x + 1")["result"] == 42
    assert js.run("y.n += 1; [y.n, f(1), new C().m(), join('a', 'b'), typeof os.cpus]")["result"] == [2, 42, 3, "a/b", "function"]
    assert js.run("const x = 'again'; class C {}\nx")["result"] == "again"
    r = js.run("x = 1")
    assert r["error"]["name"] == "TypeError" and "constant" in r["error"]["value"]
    assert js.run("await new Promise((r) => setTimeout(r, 5, x))")["result"] == "again"


def test_an_error_keeps_the_state(js):
    js.run("let x = 1")
    r = js.run("x = 2\nnull.y")
    assert r["error"]["name"] == "TypeError"
    assert r["stderr"].startswith("<cell-2>:2\nnull.y\n     ^\n\nTypeError: Cannot read properties of null (reading 'y')\n    at <cell-2>:2:6\n"), r["stderr"]
    assert js.run("let (")["error"]["name"] == "SyntaxError"
    js.run("setTimeout(() => { throw new Error('late') }, 1); 1")
    assert js.run("await new Promise((r) => setTimeout(r, 20)); x")["result"] == 2


def test_exit_ends_the_run_only(js):
    js.run("let x = 1")
    r = js.run("process.exit(3); x = 2")
    assert (r["exit_code"], r["session_reset"]) == (3, False), r
    r = js.run("await 0; process.exitCode = 4; process.exit()")
    assert (r["exit_code"], r["session_reset"]) == (4, False), r
    assert js.run("x")["result"] == 1


def test_a_crash_ends_the_runner(js):
    js.run("globalThis.x = 1")
    r = js.run("process.kill(process.pid, 'SIGKILL'); for (;;);")
    assert (r["signal"], r["session_reset"]) == (9, True), r
    assert js.run("typeof x")["result"] == "undefined"


@pytest.mark.parametrize("code", [
    "go(); for (;;);", "go(); await new Promise(() => {})", "await 0; go(); for (;;);",
    "setTimeout(() => { go(); for (;;); }, 1); await new Promise(() => {})", "go(); try { for (;;); } catch {} finally { x = 2 }",
    "go(); (async () => { for (;;) await 0; })()", "go(); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
])
def test_an_interrupt_keeps_the_state(js, code):
    js.run("let x = 1; const go = () => console.log('go')")
    ident = js.start(code)
    js.wait_for_output(ident, "go")
    js.act("interrupt")
    r = js.result(ident)
    assert (r["status"], r["error"]["name"], r["session_reset"]) == ("failed", "Interrupted", False), r
    assert js.run("x")["result"] == 1


def test_a_timeout_keeps_the_state(js):
    js.run("let x = 1")
    r = js.run("for (;;);", timeout=1)
    assert (r["status"], r["session_reset"]) == ("timeout", False), r
    assert js.run("x")["result"] == 1


def test_each_run_has_its_input(js):
    assert js.run("let all = ''; for await (const part of process.stdin) all += part; all", stdin="one")["result"] == "one"
    assert js.run("require('fs').readFileSync('/dev/stdin', 'utf8')", stdin="two")["result"] == "two"
    assert js.run("await new Promise((r) => process.stdin.once('data', (d) => r(String(d))))", stdin="three")["result"] == "three"


def test_callbacks_continue_between_runs(js):
    js.run("const http = require('http'); const server = http.createServer((q, s) => s.end('served'));"
           "await new Promise((r) => server.listen(0, '127.0.0.1', r)); const { port } = server.address()")
    # Late enough that the run has ended; what it prints goes to the next.
    assert js.run("const late = new Promise((r) => setTimeout(() => r(console.log('late')), 1000)); 1")["stdout"] == ""
    r = js.run("await late; await (await fetch(`http://127.0.0.1:${port}/`)).text()")
    assert (r["stdout"], r["result"]) == ("late\n", "served"), r


def test_rich_values(js):
    r = js.run("display(Buffer.from('89504e470d0a1a0a', 'hex')); display({ [Symbol.for('Jupyter.display')]: () => ({ 'text/html': '<b>x</b>' }) }); ({ a: 1 })")
    assert [sorted(one) for one in r["results"]] == [["image/png", "text/plain"], ["text/html", "text/plain"], ["application/json", "text/plain"]], r
    assert json.loads(r["results"][2]["application/json"]) == {"a": 1} and r["results"][2]["text/plain"] == "{ a: 1 }"


# Handlers


def call(client, code, event, **fields):
    return client.post("/api/v1/execute", {"language": "javascript", "handler_code": code, "event": event, **fields}).json


@pytest.mark.parametrize("code", [
    "exports.handler = (event) => ({ sum: event.a + event.b })", "exports.handler = async (event, context) => ({ sum: event.a + event.b })",
    "module.exports = { handler: ({ a, b }) => ({ sum: a + b }) }", "export const handler = async ({ a, b }) => { await 0; return { sum: a + b } }",
    "function handler(e) { return { sum: e.a + e.b } }", "const handler = async (e) => ({ sum: e.a + e.b })",
])
def test_a_handler_is_called(client, code):
    r = call(client, code, {"a": 1, "b": 2})
    assert (r["status"], r["result"]) == ("success", {"sum": 3}), r


def test_a_handler_has_a_context(client):
    r = call(client, "exports.handler = async (e, c) => [typeof c.getRemainingTimeInMillis(), c.getRemainingTimeInMillis() > 0, c.functionName === c.function_name]", {})
    assert r["result"] == ["number", True, True], r


def test_keys_of_a_handler_that_become_the_same(client):
    assert call(client, "exports.handler = () => ({ 'x\\ud800': 1, 'x\\udc00': 2 })", {})["result"] == {"x\ufffd": 2}


@pytest.mark.parametrize("code, exit_code, name", [
    ("let a = 1", 1, "HandlerNotFound"), ("let a = ;", 1, "SyntaxError"), ("exports.handler = async () => { throw new TypeError('no') }", 2, "TypeError"),
    ("exports.handler = () => 1n", 3, "ResultNotJson"), ("exports.handler = () => { const a = {}; a.a = a; return a }", 3, "ResultNotJson"),
    ("exports.handler = () => ({ 'a\\0b': 1 })", 3, "ResultNotJson"),
])
def test_a_handler_fails(client, code, exit_code, name):
    r = call(client, code, {})
    assert (r["exit_code"], r["error"]["name"]) == (exit_code, name), r


# The command line


def test_the_command_line(daemon, build, tmp_path):
    file = tmp_path / "try.js"
    file.write_text("console.log('file', process.argv[2], __filename)")
    command = [build / "millibox", "run", "--socket", daemon.socket]
    out = subprocess.run([*command, file, "word"], capture_output=True, text=True, timeout=60)
    assert out.stdout == "file word /workspace/try.js\n", out
    out = subprocess.run([*command, "-l", "javascript", "-c", "console.log(6 * 7); throw new Error('x')"], capture_output=True, text=True, timeout=60)
    assert out.stdout == "42\n" and out.returncode == 1 and "Error: x" in out.stderr, out


# Other ways in


def test_the_same_in_a_prepared_process(make_daemon):
    """Pools start Node.js before the program is known."""
    cases = [{"code": "console.log(process.argv.slice(2), require('fs').readFileSync(0, 'utf8'))", "args": ["a", ""], "stdin": "typed"},
             {"code": "null.x"}, {"code": "({ a: 1 })"}, {"code": "process.exit(3)"}, {"code": "import { join } from 'path'; join('a', 'b')"},
             {"code": "process.on('exit', () => console.log('bye')); Object.keys(globalThis).sort()"},
             {"code": "setTimeout(() => { console.log('late'); throw new Error('x') }, 5)"}]
    keys = ("status", "exit_code", "stdout", "stderr", "result", "results", "error")
    before, host.POOLED = host.POOLED, True
    try:
        warm, cold = make_daemon(env={"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_POOLS_MAX": "16", "MILLIBOX_POOLS_SESSION_FLOOR": "0"}).start(), make_daemon().start()
        with warm.client() as client, cold.client() as other:
            for case in cases:
                result = execute_pooled(client, case)
                assert {key: result.get(key) for key in keys} == {key: other.execute("javascript", **case).get(key) for key in keys}
    finally:
        host.POOLED = before


def execute_pooled(client, case):
    for _ in range(10):
        host.wait_until(lambda: client.get("/api/v1/pools").json["making"] == 0, 20, "pools rest")
        result = client.execute("javascript", **case)
        if result["isolation"]["pooled"]:
            return result
    raise AssertionError("never in a box of a pool")


def test_tools(daemon):
    with Mcp(daemon.socket) as mcp:
        assert "42" in json.dumps(mcp.call("execute_code", code="const x = 41; x + 1", language="javascript"))


def test_sandbox_run(daemon, build, tmp_path):
    program = tmp_path / "sandbox-run"
    program.symlink_to(build / "millibox")
    (tmp_path / "script.js").write_text("exports.handler = async (event, context) => ({ got: event.a, name: context.functionName })")
    done = subprocess.run([program, "script.js", "-e", '{"a": 1}', "-c", '{"function_name": "f"}', "--format", "json", "--socket", daemon.socket],
                          cwd=tmp_path, capture_output=True, text=True, timeout=60, env={**os.environ, "HOME": str(tmp_path)})
    assert json.loads(done.stdout)["result"] == {"got": 1, "name": "f"}, done
