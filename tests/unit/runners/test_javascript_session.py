# SPDX-License-Identifier: Apache-2.0
"""JavaScript's session.js and run.js, driven over their channels as the agent would, without an agent."""

import os
import pathlib
import shutil
import socket
import subprocess

import pytest

from rig import Session

ROOT = pathlib.Path(__file__).parents[3]
ADDON = pathlib.Path(os.environ.get("MILLIBOX_BUILD", ROOT / "build")) / "millibox-addon.node"
NODE = shutil.which("node")
ENV = {"PATH": "/usr/bin:/bin", "GIVEN": "1"}
FLAGS = ["--no-force-async-hooks-checks"]

pytestmark = pytest.mark.skipif(not NODE, reason="there is no node")


@pytest.fixture(scope="module")
def runners(tmp_path_factory):
    """As in a box: the addon is beside the folders."""
    folder = tmp_path_factory.mktemp("runners")
    shutil.copytree(ROOT / "runners/javascript", folder / "javascript")
    shutil.copy(ADDON, folder / "addon.node")
    return folder


@pytest.fixture
def session(runners, tmp_path):
    made = Session(tmp_path, [NODE, *FLAGS, runners / "javascript/session.js"], ENV)
    yield made
    made.close()


def test_names_persist_and_may_be_declared_again(session):
    assert session.run("const x = 1; let y = 2; x + y").result == 3
    assert session.run("const x = 5; class y {}; [x, typeof y]").result == [5, "function"]
    assert session.run("var z").report == {}


def test_code_runs_as_a_program_would(session):
    done = session.run("""
        console.log(process.argv.slice(2), process.env.GIVEN, process.env.MORE);
        console.error(require('fs').readFileSync(0, 'utf8'));
        require('child_process').spawnSync('echo', ['child'], { stdio: 'inherit' });
        """, "one", "zwei", stdin=b"typed", env=("MORE=2",))
    assert (done.code, done.out, done.err) == (0, "[ 'one', 'zwei' ] 1 2\nchild\n", "typed\n")
    assert session.run("[process.argv.length, process.env.MORE === undefined]").result == [2, True]


@pytest.mark.parametrize("code, exported", [
    ("export const a = 1, { b, c: [d] } = { b: 2, c: [3] };", {"a": 1, "b": 2, "d": 3}),
    ("export function f() {}\nexport default class K {}", {"default", "f"}),
    ("const a = 1; export { a as b, a as 'c d' };", {"b": 1, "c d": 1}),
    ("export default 6 * 7", {"default": 42}),
    ("export * from 'path'; export { sep as s } from 'path'; export * as all from 'path'", {"join", "s", "all"}),
])
def test_exports(session, code, exported):
    assert session.run(code).code == 0
    if isinstance(exported, dict):
        assert session.run("({ ...module.exports })").result == exported
    else:
        assert exported <= set(session.run("Object.keys(module.exports)").result)


@pytest.mark.parametrize("code", [
    "import a, { b as c,\n  d\n} from\n 'path';\nnull.x", "'import'; `import ${1}\n\n\n`;\nnull.x", "// import x from 'y'\nimport('path');\n\n\nnull.x",
    "/import/.test('');\n\n\n\nnull.x", "export {\n\n\n};\nnull.x",
])
def test_rewriting_keeps_lines(session, code):
    assert "<cell-1>:5\nnull.x\n" in session.run(code).err


def test_what_is_printed_late_is_in_the_next_run(session):
    session.run("setTimeout(() => { console.log('out'); console.error('err') }, 10)")
    done = session.run("await new Promise((r) => setTimeout(r, 50))")
    assert (done.out, done.err) == ("out\n", "err\n")
    session.run("let n = 0; const t = setInterval(() => { console.log('x'.repeat(1000)); n++ }, 0)")
    session.run("await new Promise((r) => setTimeout(r, 5)); clearInterval(t)")


@pytest.mark.parametrize("code", [
    "process.stdout.end(); process.stdout.destroy()", "console.log = 1; delete globalThis.process", "process.removeAllListeners('uncaughtException'); Promise.reject(1); 1",
    "process.on('SIGINT', () => {}); process.removeAllListeners('SIGINT')", "process.stdin.destroy()",
    "require('inspector').close(); JSON.stringify = null", "Error.prepareStackTrace = () => { throw 1 }; new Error('x').stack",
])
def test_ordinary_misuse_costs_no_session(session, code):
    session.run("let x = 1")
    assert session.run(code) is not None
    assert session.run("x").code == 0
    out, err = session.begin("require('fs').writeSync(1, 'up'); for (;;);")
    assert os.read(out, 2) == b"up"
    session.interrupt()
    assert session.finish(out, err).code == 130
    assert session.run("x").code == 0


@pytest.mark.parametrize("code", ["Array.prototype.map = Array.prototype.slice = null", "String.prototype.split = null"])
def test_a_broken_runner_ends(session, code):
    """Instead of keeping its caller waiting."""
    session.run(code)
    try:
        session.run("1")
    except ConnectionError:
        pass
    assert session.process.wait(20) == 1


def prepared(runners, tmp_path, code, args=(), stdin=None):
    """Return: what the process wrote to its channel, stdout, stderr, exit status."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(20)
    reader, writer = os.pipe()
    source = tmp_path / "main.js"
    source.write_text(code)

    def place():
        high, low = os.dup(theirs.fileno()), os.dup(reader)
        os.dup2(high, 3)
        os.dup2(low, 4)

    process = subprocess.Popen([NODE, runners / "javascript/run.js", "-"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, preexec_fn=place, pass_fds=[3, 4], env=ENV)
    theirs.close()
    os.close(reader)
    assert ours.recv(100) == b"ready"
    words = [f"{'run' if stdin is None else 'stdin'} 1 {source}", "", *args, ""]
    ours.send(b"\0".join([word.encode() for word in words]))
    os.write(writer, stdin or b"")
    os.close(writer)
    out, err = process.communicate(timeout=20)
    said = ours.recv(100)
    ours.close()
    return said, out.decode(), err.decode(), process.returncode


def test_a_prepared_program(runners, tmp_path):
    code = "console.log(process.argv.slice(2), require('fs').readFileSync(0, 'utf8')); process.exitCode = 3"
    assert prepared(runners, tmp_path, code, ["a", ""], b"typed") == (b"done 3", "[ 'a', '' ] typed\n", "", 3)
    assert prepared(runners, tmp_path, code, ["a"])[1] == "[ 'a' ] \n"
    said, out, err, status = prepared(runners, tmp_path, "process.on('exit', () => console.log('end')); null.x")
    assert (said, out, status) == (b"", "end\n", 1) and "/workspace/main.js:1" in err
