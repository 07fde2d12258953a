# SPDX-License-Identifier: Apache-2.0
"""The programs in README.md and docs/*.md are run as they are printed there. Only addresses differ, and what starts the daemon."""

import json
import re
import subprocess
import sys

import pytest
import yaml

from support.daemon import BUILD, ROOT

pytestmark = pytest.mark.phases("system")

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
ADDRESS = re.compile(r"(?<![\w.])(?:http://)?(?:127\.0\.0\.1|localhost):8000\b")


def blocks(page, kind):
    """[(first line, text)] of the page's blocks of one language."""
    return [(text.splitlines()[0], text) for language, text in BLOCK.findall((ROOT / page).read_text()) if language == kind]


class Reader:
    """Types what a page shows, in a directory of its own where build/ is the build."""

    def __init__(self, daemon, folder):
        self.daemon, self.folder = daemon, folder
        (folder / "build").symlink_to(BUILD)
        self.env = {"PATH": f"{BUILD}:/usr/bin:/bin", "HOME": str(folder), "MILLIBOX_SOCKET": daemon.socket, "SOCKET": daemon.socket}

    def run(self, text, *command):
        address = "http://{}:{}".format(*self.daemon.tcp_address()) if self.daemon.tcp else "http://no.tcp"
        text = ADDRESS.sub(address, text).replace("/tmp/", f"{self.folder}/")
        done = subprocess.run([*(command or ("bash", "-eu", "-o", "pipefail", "-c")), text], cwd=self.folder, env=self.env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (text, done)
        return done.stdout


@pytest.fixture
def reader(daemon, tmp_path):
    return Reader(daemon, tmp_path)


def assert_form(shown, got):
    """The answer has the members that the page shows, of the same types."""
    if isinstance(shown, dict):
        assert shown.keys() <= got.keys(), (shown, got)
        for key, value in shown.items():
            assert_form(value, got[key])
    elif isinstance(shown, (int, float)) and not isinstance(shown, bool):
        assert isinstance(got, (int, float)), (shown, got)
    else:
        assert isinstance(got, type(shown)), (shown, got)


# README.md and the tour, block by block


def check_first_request(output):
    ((_, shown),) = blocks("docs/tour.md", "json")
    shown, got = json.loads(shown), json.loads(output)
    assert_form(shown, got)
    assert (got["status"], got["stdout"]) == (shown["status"], shown["stdout"]) == ("success", "42\n")


def check_three_commands(output):
    assert output.startswith("42\n") and "/sock" in output and "seccomp" in output


def check_command_line(output):
    lines = output.splitlines()
    assert lines[0] == "42" and lines[1].startswith("uid=") and lines[2] == "42" and lines[3] == "sum: 6"
    assert "seccomp" in output and "pivot_root" in output


def check_session(output):
    decoder, results = json.JSONDecoder(), []
    while output := output.strip():
        result, end = decoder.raw_decode(output)
        results.append(result)
        output = output[end:]
    assert [(r["status"], r.get("result")) for r in results] == [("success", None), ("success", 42)]


def check_figure(output):
    assert "a.csv" in output and "a.png" in output


#: Page and beginning of a block: what checks its output; None: the fixture's daemon stands for it, and package/test_bare_root.py runs it.
FIRST_STEPS = {
    ("README.md", "apt-get install ./"): None,
    ("README.md", "millibox run -c"): check_three_commands,
    ("README.md", "make run "): None,
    ("docs/tour.md", "curl -s http://127.0.0.1:8000/api/v1/execute"): check_first_request,
    ("docs/tour.md", "millibox run -c"): check_command_line,
    ("docs/tour.md", "id=$(curl -s http://127.0.0.1:8000/api/v1/sessions"): check_session,
    ("docs/tour.md", "apt-get install"): check_figure,
}


def test_every_block_of_the_first_steps_is_known():
    shown = [(page, line) for page in ("README.md", "docs/tour.md") for line, _ in blocks(page, "sh")]
    assert len(shown) == len(FIRST_STEPS), shown
    for (page, line), (known, first) in zip(shown, FIRST_STEPS):
        assert page == known and line.startswith(first), (page, line)


@pytest.mark.parametrize("page, first", [known for known, check in FIRST_STEPS.items() if check])
def test_a_block_of_the_first_steps_does_what_it_says(reader, client, page, first):
    ((_, text),) = [block for block in blocks(page, "sh") if block[0].startswith(first)]
    if first.startswith("apt-get "):
        install, _, text = text.partition("\n")
        packages = install.partition("#")[0].split()[3:]
        if subprocess.run(["dpkg", "-s", *packages], capture_output=True).returncode:
            pytest.skip(f"not installed: {packages}")
    try:
        FIRST_STEPS[page, first](reader.run(text))
    finally:
        for session in client.get("/api/v1/sessions").json["sessions"]:
            client.request("DELETE", f"/api/v1/sessions/{session['session_id']}")
    if first.startswith("apt-get "):
        assert (reader.folder / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("page", ["README.md", "docs/tour.md"])
def test_the_python_of_the_first_steps_runs(reader, page):
    ((_, text),) = blocks(page, "python")
    reader.env["PYTHONPATH"] = str(ROOT / "sdk/python/src")
    assert reader.run(text, sys.executable, "-c").split() == ["42"]


def test_the_words_between_the_blocks_run(reader):
    """Programs inside of sentences."""
    text = (ROOT / "docs/tour.md").read_text()
    create, first, second = (re.search(re.escape(word) + "[^`]*", text)[0] for word in
                             ("id=$(millibox session create)", "millibox session exec \"$id\" -c 'x = 41'", "-c 'x + 1'"))
    end = re.search(r'curl -X DELETE "[^`"]*"', text)[0]
    shown = re.search(r'millibox execution list "\$id"', text)[0]
    output = reader.run(f"{create}\n{first}\n{first.partition(' -c ')[0]} {second}\n{shown}\nmillibox stats\n{end}\n")
    assert output.startswith("42\n") and output.count("exec_") == 2, output


# docs


NEEDS_OWN = "starts a daemon: test_cli_up.py"
NEEDS_ENGINE = "needs a container engine: package/test_image.py"
NEEDS_HOST = "changes the host: units, groups, files of root"
NEEDS_REGISTRY = "installs from a registry: test_packages_real.py"
NEEDS_OTHERS = "needs an outside server: test_gateway.py"
NEEDS_RELEASE = "needs the files of a release: package/test_release.py"

#: Page and beginning of a block: what must be in its output, or in a tuple why it is not run.
PAGES = {
    ("docs/containers.md", "docker load"): (NEEDS_ENGINE,),
    ("docs/containers.md", "docker run --name best-effort"): (NEEDS_ENGINE,),
    ("docs/containers.md", "mkdir -p bundle/rootfs"): (NEEDS_ENGINE,),
    ("docs/gateway.md", "curl --unix-socket"): (NEEDS_OTHERS,),
    ("docs/languages.md", "curl -s http://127.0.0.1:8000/api/v1/execute"): '"exit_code":42',
    ("docs/languages.md", "make languages"): (NEEDS_HOST,),
    ("docs/mcp.md", "hello="): '"structuredContent"',
    ("docs/network.md", "MILLIBOX_POLICY_DIR="): '"kind":"network"',
    ("docs/network.md", "millibox run --allow"): ("needs an outside server: test_network.py",),
    ("docs/network.md", "nft delete table"): (NEEDS_HOST,),
    ("docs/operations.md", "apt-get install ./dist/"): (NEEDS_HOST,),
    ("docs/operations.md", "make install"): (NEEDS_HOST,),
    ("docs/operations.md", "millibox up -d"): (NEEDS_OWN,),
    ("docs/operations.md", "milliboxd --dump-config"): "",
    ("docs/operations.md", "groupadd"): (NEEDS_HOST,),
    ("docs/operations.md", "millibox key create"): "mb_",
    ("docs/operations.md", "millibox tenant create"): "alice",
    ("docs/operations.md", "MILLIBOX_API_KEY_FILE=key"): ("needs a certificate: test_tls.py",),
    ("docs/operations.md", "millibox pool list"): '"pools"',
    ("docs/operations.md", "(umask 077"): (NEEDS_HOST,),
    ("docs/operations.md", "systemctl stop"): (NEEDS_HOST,),
    ("docs/packages.md", "curl -s localhost:8000"): (NEEDS_REGISTRY,),
    ("docs/packages.md", "millibox session install"): (NEEDS_REGISTRY,),
    ("docs/packages.md", "millibox template import"): ("installs from an archive: test_packages_apt.py",),
    ("docs/packages.md", "millibox package list"): (NEEDS_REGISTRY,),
    ("docs/ports.md", "SESSION="): "8080",
    ("docs/receipts.md", "millibox receipt key"): "",
    ("docs/releases.md", "ssh-keygen -Y verify"): (NEEDS_RELEASE,),
    ("docs/releases.md", "ssh-keygen -t ed25519"): (NEEDS_RELEASE,),
    ("docs/secrets.md", "millibox secret set"): "",
    ("docs/terminals.md", "id="): "done",
}


def test_every_block_of_the_documents_is_known():
    pages = sorted({str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")} - {"docs/tour.md"})
    shown = [(page, line) for page in pages for line, _ in blocks(page, "sh")]
    assert len(shown) == len(PAGES), shown
    for (page, line), (known, first) in zip(shown, PAGES):
        assert page == known and line.startswith(first), (page, line)


def prepare(make_daemon, page, text, folder):
    """A daemon with the policies that the page shows, and the files that the block reads."""
    env = {}
    for _, policy in blocks(page, "yaml"):
        name = re.match(r"# (policies/\w+\.yaml)\n", policy)
        if name:
            (folder / "policies").mkdir(exist_ok=True)
            (folder / name[1]).write_text(policy)
            env = {"MILLIBOX_POLICY_DIR": f"{folder}/policies", "MILLIBOX_POLICY_DEFAULT": yaml.safe_load(policy)["name"]}
    folder.chmod(0o755)
    (folder / "key.txt").write_text("sk-123456789\n")
    (folder / "job.py").write_text("print(6 * 7)\n")
    return Reader(make_daemon(tcp=True, env=env).start(), folder)


def adapt(reader, text):
    if text.startswith("MILLIBOX_POLICY_DIR="):
        command, _, text = text.partition("\n")
        assert command.split()[:3] == ["MILLIBOX_POLICY_DIR=$PWD/policies", "MILLIBOX_POLICY_DEFAULT=agents", "milliboxd"]
    if "key revoke" in text:
        text = re.sub(r"key revoke \w+", 'key revoke "$(millibox key list | sed -n \'2s/ .*//p\')"', text)
        text = "millibox tenant create alice\n" + text
    if "--policy strict" in text:
        text = text.replace("--policy strict", "--policy default")
    return text


@pytest.mark.parametrize("page, first", [known for known, what in PAGES.items() if isinstance(what, str)])
def test_a_block_of_a_document_runs(make_daemon, tmp_path, page, first):
    ((_, text),) = [block for block in blocks(page, "sh") if block[0].startswith(first)]
    reader = prepare(make_daemon, page, text, tmp_path)
    output = reader.run(adapt(reader, text))
    assert PAGES[page, first] in output, output
    reader.daemon.settle()


@pytest.mark.parametrize("page", sorted({page for page, _ in PAGES} | {"docs/policies.md"}))
def test_policies_and_settings_of_a_document_are_valid(page, tmp_path):
    """In a copy of /etc/millibox with the files that the page names."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "github-token").write_text("12345678")
    checks = {}
    for _, text in blocks(page, "yaml"):
        is_settings = text.startswith("# millibox.yaml")
        path = tmp_path / ("millibox.yaml" if is_settings else f"policies/{yaml.safe_load(text)['name']}.yaml")
        path.write_text(text.replace("/etc/millibox/", f"{tmp_path}/"))
        checks[path] = ["config", "validate"] if is_settings else ["policy", "check"]
    for path, command in checks.items():
        done = subprocess.run([str(BUILD / "millibox"), *command, str(path)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done
