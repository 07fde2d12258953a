# SPDX-License-Identifier: Apache-2.0
"""docs/protocol.md says what the sources say."""

import pathlib
import re
import subprocess

import harness

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / "docs/protocol.md").read_text()
TYPES = "U8|U16|U32|U64|I32|STRS|STR|BYTES"


def messages_of_the_source():
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "src/wire/msg.def").read_text(), flags=re.S)
    found = re.split(r"^MSG\(", text, flags=re.M)[1:]
    rows = []
    for number, body in enumerate(found, start=1):
        name, _, direction = [word.strip() for word in body.split(",")[:3]]
        fields = [f"{kind} {field}" for kind, field in re.findall(rf"\b({TYPES})\((\w+)\)", body)]
        rows.append((number, name, direction, fields))
    return rows


def messages_of_the_page():
    sections = PAGE.split("### Messages ")
    rows = []
    for direction, section in (("HOST", sections[1]), ("AGENT", sections[2])):
        table = section.split("### ")[0]
        for number, name, fields in re.findall(r"^\| (\d+) \| (\w+) \| (.*?) \|", table, flags=re.M):
            rows.append((int(number), name, direction, fields.split(", ")))
    return sorted(rows)


def test_messages_are_those_of_the_source():
    assert len(messages_of_the_source()) >= 18
    assert messages_of_the_page() == messages_of_the_source()


def test_harness_matches_the_source():
    for number, name, _, fields in messages_of_the_source():
        assert harness.TYPES[name] == number
        if name in harness.FIELDS:
            assert [field for field, _ in harness.FIELDS[name]] == [f.split()[1] for f in fields]


def test_constants_are_those_of_the_source():
    frame = (ROOT / "src/wire/frame.h").read_text()
    message = (ROOT / "src/wire/msg.h").read_text()
    assert "#define FRAME_MAX_PAYLOAD (128 * 1024)" in frame and "at most 131072" in PAGE
    assert "#define FRAME_CHUNK (64 * 1024)" in frame and "at most 65536 bytes" in PAGE
    assert re.search(r"#define WIRE_STDIN_WINDOW \(256 \* 1024\)", message) and "262144 bytes of STDIN" in PAGE
    assert re.search(r"#define WIRE_STRS_MAX +1024", message) and "at most 1024" in PAGE
    assert re.search(r"#define WIRE_PORT_WINDOW +\(128 \* 1024\)", message) and "at most 131072 bytes in flight" in PAGE
    assert re.search(r"#define WIRE_PORTS_MAX +64\b", message) and "Up to 64 connections" in PAGE
    assert re.search(r"#define WIRE_LISTED_MAX +256\b", message) and "listens, at most 256" in PAGE
    version = re.search(r"#define WIRE_VERSION +(\d+)", message).group(1)
    assert f"`version` in HELLO and SETUP is {version}." in PAGE
    resident = (ROOT / "src/guest/resident.h").read_text()
    assert re.search(r"#define RESIDENT_MAX +4\n", resident) and "at most 4 at a time" in PAGE
    assert re.search(r"#define RESIDENT_REQUEST_MAX +\(72 \* 1024\)", resident) and "at most 73728 bytes |" in PAGE
    assert re.search(r"#define RESIDENT_PIECE_MAX +\(60 \* 1024\)", resident) and "at most 61440 bytes" in PAGE
    assert "#define DISCARD_MAX 16" in (ROOT / "src/guest/discard.h").read_text() and "the last 16 pipes" in PAGE
    kinds = re.search(r"#define DENIALS_KINDS_MAX (\d+)", (ROOT / "src/guest/denials.h").read_text()).group(1)
    assert f"at most {kinds} kinds" in PAGE


def test_example_is_a_frame():
    block = PAGE.split("```")[1]
    data = bytes.fromhex("".join(re.match(r"((?:[0-9a-f]{2} +)+)", line + " ").group(1)
                                 for line in block.strip().split("\n")))
    assert data == harness.Agent.exec(["/bin/true"], env=(), out=1 << 20, err=1 << 20, drain=100)


def test_engine_layout_is_that_of_the_compiler(tmp_path):
    rows = re.findall(r"^\| (\d+) \| (\d+) \| `(engine_\w+)\.(\w+)` \|", PAGE, flags=re.M)
    assert len(rows) >= 20
    lines = [f'printf("%zu %zu\\n", offsetof(struct {s}, {f}), sizeof(((struct {s} *)0)->{f}));'
             for _, _, s, f in rows]
    sizes = [int(n) for n in re.findall(r"^(?:Request|Reply), (\d+) bytes:$", PAGE, flags=re.M)]
    source = tmp_path / "layout.c"
    source.write_text('#include "engine/engine.h"\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n'
                      + "\n".join(lines) + "\nprintf(\"%zu %zu\\n\", sizeof(struct engine_request), "
                      "sizeof(struct engine_reply));\nreturn 0;\n}\n")
    subprocess.run(["cc", f"-I{ROOT}/lib", f"-I{ROOT}/src", "-o", tmp_path / "layout", source], check=True)
    layout = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True).stdout.split("\n")
    for (offset, size, struct, field), line in zip(rows, layout):
        assert line == f"{offset} {size}", f"{struct}.{field}"
    assert layout[len(rows)].split() == [str(n) for n in sizes]


def test_the_seeds_of_the_fuzzer_are_of_this_version():
    """With another one the link refuses the first frame, and nothing behind it is ever read."""
    begin = harness.frame("HELLO", bytes(12))[:12]
    seeds = {path.name: path.read_bytes() for path in (ROOT / "tests/fuzz/corpus/link").iterdir()}
    versions = {name: int.from_bytes(data[data.index(begin) + 12:][:4], "little") for name, data in seeds.items() if begin in data}
    other = versions.pop("other-version")
    assert other != harness.VERSION and len(versions) > 40
    assert set(versions.values()) == {harness.VERSION}, versions
