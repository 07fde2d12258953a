# SPDX-License-Identifier: Apache-2.0
"""TypeScript through the API of a real daemon: it is JavaScript with types, and errors show TypeScript's positions."""

import pathlib
import subprocess

import pytest

from support.sessions import Session

NODE = pathlib.Path("/usr/bin/node")
COMPILERS = [pathlib.Path(place) / "typescript/lib/typescript.js"
             for place in ("/usr/share/nodejs", "/usr/lib/node_modules", "/usr/local/lib/node_modules")]

pytestmark = [pytest.mark.phases("system"),
              pytest.mark.skipif(not NODE.exists(), reason=f"there is no {NODE}, and boxes see no other"),
              pytest.mark.skipif(not any(file.exists() for file in COMPILERS), reason="the package node-typescript is not installed")]

GENERIC = """
interface Box<T> { value: T }
enum Colour { Red, Green = 5 }
type Pair = readonly [string, number];
abstract class Shape { constructor(protected readonly side: number) {} abstract area(): number }
class Square extends Shape { override area(): number { return this.side ** 2 } }
const unwrap = async <T,>(box: Box<T>): Promise<T> => { await null; return box.value };
function first<T extends { length: number }>(items: T[]): T | undefined { return items[0] }
const pair: Pair = ['a', 1];
"""


def test_a_program_with_generics_and_async(client):
    r = client.execute("typescript", GENERIC + "[await unwrap({ value: Colour.Green }), first(['xy'])!.length, pair[0] as string, new Square(3).area()]")
    assert (r["status"], r["result"]) == ("success", [5, 2, "a", 9]), r


def test_input_arguments_and_exit_code(client):
    code = "const text: string = require('fs').readFileSync(0, 'utf8');\nconsole.log(text.trim() as string, process.argv[2]!);\nprocess.exit(3);"
    r = client.execute("ts", code, stdin="é\n", args=["☃"])
    assert (r["stdout"], r["exit_code"]) == ("é ☃\n", 3), r


@pytest.mark.parametrize("code, name, place, words", [
    ("interface A {\n  b: string;\n}\n\nfunction f(a: A): never {\n  throw new RangeError(a.b);\n}\nf({ b: 'x' });", "RangeError", 6,
     "  throw new RangeError(a.b);\n        ^\n\nRangeError: x\n    at f (/workspace/main.ts:6:9)\n    at /workspace/main.ts:8:1\n"),
    ("type A = number;\nlet a: A = ;", "SyntaxError", 2, "let a: A = ;\n           ^\n\nSyntaxError: Expression expected.\n/workspace/main.ts(2,12): error TS1109"),
    ("type A = { b: any };\nsetTimeout((): void => {\n  const a: A = { b: null };\n  a.b.c;\n}, 1);", "TypeError", 4,
     "  a.b.c;\n      ^\n\nTypeError: Cannot read properties of null (reading 'c')\n    at Timeout._onTimeout (/workspace/main.ts:4:7)"),
])
def test_errors_have_typescript_positions(client, code, name, place, words):
    r = client.execute("typescript", code)
    assert (r["status"], r["error"]["name"]) == ("failed", name), r
    assert r["stderr"].startswith(f"/workspace/main.ts:{place}\n{words}"), r["stderr"]
    assert r["error"]["traceback"][0] == f"/workspace/main.ts:{place}"


def test_files_may_be_typescript(client):
    files = {"a.ts": "export const f = (x: number): number => x + 1;\nexport default 'a' as string;", "b.js": "exports.g = 2;",
             "c.ts": "import { f } from './a';\nexport function h(): number {\n  return f(1) + (null as any).x;\n}"}
    code = "import a, { f } from './a';\nimport { f as again } from './a.js';\nimport { g } from './b.js';\n"
    assert client.execute("typescript", code + "[a, f(1), again === f, g]", files=files)["result"] == ["a", 2, True, 2]
    r = client.execute("typescript", "import { h } from './c';\nh();", files=files)
    assert r["stderr"].startswith("/workspace/c.ts:3\n  return f(1) + (null as any).x;\n") and "at h (/workspace/c.ts:3:31)" in r["stderr"], r["stderr"]


def test_all_properties_of_commonjs_modules_are_imported(client):
    """As by the compiler with esModuleInterop: Node.js itself finds no name in a function's properties."""
    files = {"node_modules/tool/index.js": "const tool = () => 'called'; tool.double = (x) => 2 * x; (() => module)().exports = tool;",
             "node_modules/other/package.json": '{"type": "module", "exports": "./index.js"}',
             "node_modules/other/index.js": "export default { hidden: 1 }; export const shown = 2;"}
    code = """
        import * as tool from 'tool';
        import { double } from 'tool';
        import plain from 'tool';
        import * as other from 'other';
        import * as fs from 'fs';
        [tool.double(2), double(3), plain(), Object.keys(other).sort(), typeof fs.statSync]
        """
    r = client.execute("typescript", code, files=files)
    assert r["result"] == [4, 6, "called", ["default", "shown"], "function"], r


def test_a_session(client):
    session = Session(client, mode="persistent", language="typescript")
    session.run(GENERIC)
    session.run("import { join } from 'path'")
    assert session.run("const x: number = await unwrap<number>({ value: 41 }); x + 1")["result"] == 42
    assert session.run("[join('a', 'b'), Colour[0], typeof Square]")["result"] == ["a/b", "Red", "function"]
    r = session.run("interface P { q: string }\n\nconst bad = (p: P): string =>\n  (p as any).r.s;\nbad({ q: '' })")
    assert r["stderr"].startswith("<cell-5>:4\n  (p as any).r.s;\n               ^\n\nTypeError"), r["stderr"]
    assert session.run("new Error('x').stack")["result"] == "Error: x\n    at <cell-6>:1:1"
    assert session.run("x")["result"] == 41
    client.request("DELETE", session.path)


def test_a_handler(client):
    body = {"language": "typescript", "handler_code": "export const handler = async (e: { a: number }): Promise<{ b: number }> => ({ b: e.a + 1 });", "event": {"a": 1}}
    assert client.post("/api/v1/execute", body).json["result"] == {"b": 2}


def test_the_command_line(daemon, build, tmp_path):
    file = tmp_path / "try.ts"
    file.write_text("const x: string = process.argv[2];\nconsole.log(x);")
    out = subprocess.run([build / "millibox", "run", "--socket", daemon.socket, file, "word"], capture_output=True, text=True, timeout=60)
    assert out.stdout == "word\n", out
