# SPDX-License-Identifier: Apache-2.0
"""Every command of the table: help, manual and completion name the same options; normal use, wrong use, no daemon."""

import json
import re
import shutil
import subprocess

import pytest

from support import host
from support.daemon import BUILD, ROOT
from support.sessions import NAPS, events
from test_cli import environment, millibox

pytestmark = pytest.mark.phases("system")

TABLES = json.loads((BUILD / "tools/cli-tables.json").read_text())
COMMANDS = {command["name"]: command for command in TABLES["commands"]}
MANUAL = (ROOT / "docs/man/millibox.1.scd").read_text()

#: What these print is not data of Millibox, so they have no --json.
NO_JSON = {
    "repl": "a conversation",
    "shell": "a terminal",
    "mcp": "a protocol, which is JSON",
    "sandbox-run": "SandboxRunner's --format json",
    "down": "a message",
    "execution logs": "the program's bytes; 'execution show --json' has them as text",
    "logs": "the program's bytes",
    "file cat": "the file's bytes",
    "file get": "the file's bytes",
    "audit tail": "the log's own lines, which are JSON",
    "config generate": "a settings file",
    "completion": "a script",
    "help": "text for people",
}
#: Normal use of these is tested there: they need a terminal, a client, or time.
ELSEWHERE = {
    "repl": "test_cli_live.py",
    "top": "test_cli_live.py",
    "cp": "test_cli_cp.py",
    "port": "test_cli_port.py",
    "shell": "test_cli_shell.py",
    "mcp": "test_mcp_stdio.py",
    "sandbox-run": "test_sandbox_run.py",
    "up": "test_cli_up.py",
    "down": "test_cli_up.py",
    "status": "test_cli_up.py",
    "package install": "test_packages.py",
    "package show": "test_packages.py",
    "package rm": "test_packages.py",
    "template build": "test_packages.py",
    "template import": "test_images.py",
    "receipt verify": "test_receipts.py",
}


def options_of(command):
    return ["--" + option["name"] for option in COMMANDS[command]["options"]]


def call(*words, **kw):
    done = millibox(*words, **kw)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


# One table


def test_help_lists_the_options_of_the_table():
    for command in COMMANDS:
        words = command.split()
        status, text, _ = call(*words, "--help")
        assert status == 0 and text.startswith(f"Usage: millibox {command} ")
        assert call(*words, "-h") == call("help", *words) == (0, text, "")
        assert re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", text, re.M) == [*options_of(command), "--help"], command
        assert max(map(len, text.splitlines()[1:])) <= 100, text


def test_the_manual_has_the_options_of_the_table():
    for command in COMMANDS:
        (section,) = re.findall(rf"^# {command.upper()}\n((?:(?!# ).*\n)+)", MANUAL, re.M)
        assert re.findall(r"^(?:\*-\w\*, )?\*(--[a-z-]+)\*(?: _.*_)?$", section, re.M) == options_of(command), command
        assert f"\n*millibox* *{command}*" in MANUAL.partition("# DESCRIPTION")[0]


def test_completion_has_the_options_of_the_table():
    for command in COMMANDS:
        status, text, _ = call("completion", "words", *command.split(), "-")
        assert status == 0 and text.split() == [*options_of(command), "--help"], command


SHELLS = {
    "bash": '{script}\nCOMP_WORDS=({words}); COMP_CWORD={last}; _millibox; printf "%s\\n" "${{COMPREPLY[@]}}"',
    "zsh": "compdef() {{ :; }}; compadd() {{ print -l -- ${{(P)2}}; }}; _files() {{ :; }}\n{script}\nwords=({words}); CURRENT={last}+1; _millibox",
    "fish": "{script}\ncomplete -C 'millibox {line}'",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_completes_the_options_of_the_table(shell, tmp_path):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    for command in ("run", "session create", "config show"):
        words = [*command.split(), "--"]
        text = SHELLS[shell].format(script=millibox("completion", shell).stdout.decode(), last=len(words), line=" ".join(words),
                                    words=" ".join(["millibox", *words]))
        env = environment(PATH=f"{BUILD}:/usr/bin:/bin", HOME=str(tmp_path), MILLIBOX_SOCKET="/nonexistent")
        done = subprocess.run([shell, "-c", text], capture_output=True, text=True, timeout=60, env=env)
        found = [line.split()[0] for line in done.stdout.splitlines() if line]
        assert sorted(found) == sorted([*options_of(command), "--help"]), done


def test_the_overview_lists_every_command():
    status, text, _ = call("help")
    listed = re.findall(r"^  ([\w-]+(?: \w+)?)  ", text.partition("Exit status:")[0], re.M)
    assert (status, listed) == (0, list(COMMANDS))
    assert call("--help") == (0, text, "")
    assert call()[0] == 2


def test_there_is_one_table_of_exit_statuses():
    rows = [(row["status"], row["meaning"]) for row in TABLES["exit_statuses"]]
    (table,) = re.findall(r"^Exit status:\n(?:  .*\n)+", call("help")[1], re.M)
    assert re.findall(r"^  (\S+(?: \+ N)?) +(.*)$", table, re.M) == rows
    assert table in call("run", "--help")[1] and table in call("session", "exec", "--help")[1]
    section = MANUAL.partition("\n# EXIT STATUS\n")[2].partition("\n# ")[0]
    assert re.findall(r"^\*(.*)\*\n\t(.*)$", section, re.M) == rows


# Tables for people, --json for programs


def test_every_command_that_prints_data_has_json():
    without = {command for command in COMMANDS if "--json" not in options_of(command)}
    assert without == NO_JSON.keys(), "a command that prints data needs --json"


#: Commands without a daemon, whose --json is checked here.
LOCAL_JSON = {
    "version": ([], lambda v: re.fullmatch(r"\d+\.\d+\.\d+", v["version"])),
    "config show": ([], lambda v: v["limits"]["timeout"] == "30s" and v["log_level"] == "info" and v["allowed_hosts"] == []),
    "box plan": ([], lambda v: v[0]["step"]),
    "doctor": ([], lambda v: v["checks"][0]["name"]),
}


@pytest.mark.parametrize("command", LOCAL_JSON)
def test_json_without_a_daemon(command):
    words, holds = LOCAL_JSON[command]
    status, out, _ = call(*command.split(), *words, "--json", "--socket", "/nonexistent") if command == "doctor" else call(*command.split(), *words, "--json")
    assert status == 0 and holds(json.loads(out)), out


@pytest.mark.parametrize("command,good,bad,word", [
    ("config validate", "log_level: info\n", "log_level: wrong\n", "'log_level' must be"),
    ("policy check", "name: p\n", "nme: p\n", "'nme' is not a key"),
])
def test_the_verdict_about_a_file_is_json(command, good, bad, word, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(good)
    status, out, err = call(*command.split(), "--json", str(path))
    assert (status, json.loads(out), err) == (0, {"files": [str(path)], "valid": True}, "")
    path.write_text(bad)
    status, out, err = call(*command.split(), "--json", str(path))
    verdict = json.loads(out)
    assert (status, verdict["valid"], err) == (1, False, "") and verdict["error"].startswith(f"{path}:1: ") and word in verdict["error"]
    status, out, err = call(*command.split(), str(path))
    assert (status, out) == (1, "") and err.startswith(f"millibox: {path}:1: ") and word in err


#: Commands that only read, with words after them that exist in use_json.
def use_json(daemon, session, execution):
    return {
        "session list": [], "session show": [session], "execution list": [session], "execution show": [execution], "why": [execution],
        "receipt key": [], "stats": [session], "top": ["-n", "1"], "port": [session], "file ls": [session], "file stat": [session, "a"],
        "template list": [], "template imports": [], "package list": [], "secret list": [], "key list": [], "tenant list": [],
        "audit verify": [], "policy list": [], "policy show": ["default"], "policy explain": [], "languages": [], "pool list": [], "gateway list": [],
    }


def test_json_of_commands_that_only_read(daemon):
    session = call("session", "create", "--socket", daemon.socket)[1].strip()
    status, out, err = call("session", "exec", "--socket", daemon.socket, session, "--json", "-c", "open('a', 'w')")
    assert status == 0, err
    for command, words in use_json(daemon, session, json.loads(out)["execution_id"]).items():
        status, out, err = call(*command.split(), "--socket", daemon.socket, "--json", *words)
        assert status == 0 and isinstance(json.loads(out), (dict, list)), (command, status, out, err)
    assert call("session", "delete", "--socket", daemon.socket, session)[0] == 0


def test_a_refusal_is_json_too(daemon, tmp_path):
    for command in COMMANDS.keys() - MAKERS - NO_JSON.keys():
        if not ID.match(COMMANDS[command]["arguments"]) or command in ("stats", "policy show"):
            continue
        status, out, err = call(*command.split(), "--socket", daemon.socket, "--json", *NEEDS.get(command, []), *unknown_words(command, tmp_path))
        assert status == 125 and json.loads(out)["error_code"], (command, status, out, err)


# Wrong use


def requires_words(command):
    return COMMANDS[command]["arguments"] and not COMMANDS[command]["arguments"].startswith("[")


#: SandboxRunner's own: 1 for all of these.
USAGE = {"sandbox-run": 1}


def without_daemon(*words, **kw):
    return call(*words, env=environment(MILLIBOX_SOCKET="/nonexistent/socket"), **kw)


def test_an_unknown_option_is_refused():
    for command in COMMANDS.keys() - {"completion"}:
        status, out, err = without_daemon(*command.split(), "--no-such-option")
        assert (status, out) == (2, "") and "unknown option '--no-such-option'" in err, (command, err)
        assert f"Try 'millibox {command}" in err


def test_missing_arguments_are_named():
    for command in filter(requires_words, COMMANDS):
        status, out, err = without_daemon(*command.split())
        assert (status, out) == (USAGE.get(command, 2), "") and err.startswith("millibox: expected "), (command, err)


def test_an_argument_too_many_is_refused():
    for command in COMMANDS:
        if COMMANDS[command]["arguments"]:
            continue
        status, out, err = without_daemon(*command.split(), "surplus")
        assert (status, out) == (2, "") and "unexpected argument 'surplus'" in err, command


def test_an_option_without_its_value_is_refused():
    rows = {(c["name"].split()[0], o["name"], o["value"]): c["name"] for c in COMMANDS.values() for o in c["options"] if o["value"]}
    for (_, option, value), command in rows.items():
        status, out, err = without_daemon(*command.split(), "--" + option)
        assert (status, out) == (2, "") and f"--{option} requires a value ({value})" in err, (command, err)


#: Words for the placeholders of the usage line: well formed, and of nothing that exists.
UNKNOWN = {
    "SESSION": "sess_0000000000000000", "EXECUTION": "exec_20260101_00000000", "TEMPLATE": "no-template", "LAYER": "layer_0000000000000000",
    "KEY": "0000000000000000", "TENANT": "no-tenant", "NAME": "no-name", "PATH": "a", "TO": "b", "DIRECTORY": "d",
}
#: These make what they name.
MAKERS = {"template create", "template build", "tenant create", "secret set", "help"}


def unknown_words(command, folder):
    text = COMMANDS[command]["arguments"].replace("...", "")
    while "[" in text:
        text = re.sub(r"\[[^][]*\]", "", text)
    text = re.sub(r"\(([^|]*)\|.*?\)", r"\1", text).split()
    (folder / "file").write_text("1\n")
    names = {**UNKNOWN, "FILE": str(folder / "file"), "PACKAGE": "a", "SCRIPT": str(folder / "a.py")}
    if command == "cp":
        return [names["FILE"], "sess_0000000000000000:a"]
    return [names[word] for word in text]


#: Options without which a command does not get as far as the daemon.
NEEDS = {"template build": ["--packages", "a"], "secret set": ["--host", "a.example"], "run": ["-c"], "session exec": ["-c", "1"]}
ID = re.compile(r"\(?(?:SESSION|EXECUTION|TEMPLATE|LAYER|KEY|TENANT|NAME)\b")


def test_an_unknown_id_is_named(daemon, tmp_path):
    for command in COMMANDS.keys() - MAKERS:
        if not ID.match(COMMANDS[command]["arguments"]):
            continue
        status, out, err = call(*command.split(), "--socket", daemon.socket, *unknown_words(command, tmp_path))
        assert (status, out) == (125, "") and err.startswith("millibox: "), (command, status, out, err)
        assert re.search("not |no ", err) and "What to do: " in err, (command, err)


def test_a_missing_daemon_is_named(tmp_path):
    (tmp_path / "a.py").write_text("def handler(event): pass")
    for command in COMMANDS:
        # These also work without one, or start it; a shell first needs a terminal.
        if "--socket" not in options_of(command) or command in ("doctor", "audit verify", "audit tail", "shell", "up", "down", "status"):
            continue
        words = NEEDS.get(command, []) + unknown_words(command, tmp_path)
        status, out, err = call(*command.split(), "--socket", "/nonexistent/socket", *words, stdin=b"12345678")
        assert status == (5 if command == "sandbox-run" else 125) and "/nonexistent/socket" in err, (command, status, out, err)


# Normal use


def test_normal_use_of_every_command(make_daemon, tmp_path):
    daemon = make_daemon().start()
    used = set()

    def use(command, *words, stdin=b""):
        used.add(command)
        socket = ["--socket", daemon.socket] if "--socket" in options_of(command) else []
        status, out, err = call(*command.split(), *socket, *words, stdin=stdin)
        assert status == 0, (command, status, out, err)
        return out.strip()

    use_without_sessions(use, tmp_path)
    use_sessions(use, daemon, tmp_path)
    use_owned_things(use, tmp_path)
    assert used | ELSEWHERE.keys() == COMMANDS.keys()
    for command, file in ELSEWHERE.items():
        text = (ROOT / "tests/integration" / file).read_text()
        assert all(f'"{word}"' in text or f"/ \"{word}\"" in text for word in command.split()), (command, file)


def use_without_sessions(use, folder):
    (folder / "p.yaml").write_text("name: p\n")
    (folder / "m.yaml").write_text("log_level: info\n")
    assert use("run", "-c", "print(6 * 7)") == "42"
    assert use("version") in use("run", "-c", f"print({use('version')!r})")
    assert "session create" in use("help")
    assert "completion words" in use("completion", "bash")
    assert "log_level" in use("config show") and "log_level" in use("config generate")
    assert use("config validate", str(folder / "m.yaml")).endswith(": ok")
    assert "clone" in use("box plan")
    assert "seccomp" in use("doctor", "--json")
    assert "python" in use("languages")
    assert "LANGUAGE" in use("pool list")
    assert "default" in use("policy list")
    assert "timeout" in use("policy show", "default")
    assert "memory" in use("policy explain", "--memory", "64Mi")
    use("policy check", str(folder / "p.yaml"))
    use("gateway list")
    use("package list")
    assert use("receipt key")


WAITS = "print('up', flush=True)\n" + NAPS


def use_sessions(use, daemon, folder):
    session = use("session create")
    assert session in use("session list") and session in use("session show", session)
    assert use("session exec", session, "-c", "6 * 7") == "42"
    (execution,) = [e["execution_id"] for e in json.loads(use("execution list", "--json", session))["executions"]]
    assert "success" in use("execution show", execution)
    assert use("execution logs", execution) == use("logs", execution) == ""
    assert use("why", execution)
    assert session in use("stats", session)
    for command in ("session interrupt", "execution cancel", "cancel"):
        with daemon.client() as client:
            running = client.post(f"/api/v1/sessions/{session}/execute", {"code": WAITS}).json["execution_id"]
            # Its code runs: the runner ignores an interrupt that comes before that.
            with daemon.client() as watcher:
                next(event for event in events(watcher, running) if event["event"] == "stdout")
            use(command, session if command.startswith("session") else running)
            host.wait_until(lambda: client.get(f"/api/v1/executions/{running}").json["status"] != "running", 20, "it ended")
    use("session pause", session)
    use("session resume", session)
    assert use("session install", session, "pip") == ""  # the box has it
    (folder / "a.txt").write_text("text")
    use("file put", session, str(folder / "a.txt"))
    use("file mkdir", session, "d")
    use("file mv", session, "a.txt", "d/b.txt")
    assert "b.txt" in use("file ls", session, "d") and "b.txt" in use("file stat", session, "d/b.txt")
    assert use("file get", session, "d/b.txt") == use("file cat", session, "d/b.txt") == "text"
    use("file rm", session, "d/b.txt")
    use("session terminate", session)
    use("session delete", session)


def use_owned_things(use, folder):
    use("template create", "--memory", "64Mi", "own")
    use("template update", "--memory", "128Mi", "own")
    assert "own" in use("template list") and "128Mi" in use("template show", "own")
    use("template delete", "own")
    use("template imports")
    use("secret set", "--host", "api.example.com", "token", stdin=b"12345678")
    assert "token" in use("secret list") and "12345678" not in use("secret list", "--json")
    use("secret rm", "token")
    use("tenant create", "--sessions", "1", "acme")
    use("tenant set", "--sessions", "2", "acme")
    assert "acme" in use("tenant list") and "acme" in use("tenant show", "acme")
    key = use("key create", "--tenant", "acme").split()[-1].split("_")[1]
    assert key in use("key list")
    use("key revoke", key)
    use("tenant delete", "acme")
    # A thread of the daemon writes the log.
    host.wait_until(lambda: "tenant.delete" in use("audit tail"), 10, "the record of tenant.delete")
    use("audit verify")
