# SPDX-License-Identifier: Apache-2.0
"""millibox run --dir: a program on a copy of a directory; its changes shown and taken over."""

import os
import pty
import shutil
import stat
import subprocess

import pytest

from support.daemon import BUILD
from test_cli import environment, millibox

pytestmark = pytest.mark.phases("system")

UMASK = os.umask(0)
os.umask(UMASK)


@pytest.fixture
def run(daemon):
    def call(directory, code, *flags, status=0, **kw):
        done = millibox("run", "--socket", daemon.socket, "--dir", str(directory), *flags, "-l", "python", "-c", code, **kw)
        assert done.returncode == status, done
        return done

    return call


def git(directory, *words):
    env = environment(GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b", HOME=str(directory))
    return subprocess.run(["git", *words], cwd=directory, env=env, check=True, capture_output=True).stdout.decode()


@pytest.fixture
def repo(tmp_path):
    directory = tmp_path / "repo"
    (directory / "src").mkdir(parents=True)
    (directory / "a.txt").write_text("one\ntwo\n")
    (directory / "src/b.py").write_text("x = 1\n")
    (directory / "run.sh").write_text("#!/bin/sh\n")
    (directory / "run.sh").chmod(0o755)
    (directory / "link").symlink_to("a.txt")
    git(directory, "init", "-q")
    git(directory, "add", "-A")
    git(directory, "commit", "-qm", "first")
    return directory


def tree(directory):
    return {
        str(p.relative_to(directory)): os.readlink(p) if p.is_symlink() else (p.lstat().st_mode, p.read_bytes() if p.is_file() else None)
        for p in directory.rglob("*")
    }


def test_the_program_gets_a_copy(run, repo):
    before = tree(repo)
    done = run(repo, "import os; print(sorted(os.listdir())); print(open('a.txt').read(), end=''); open('a.txt', 'w').write('gone')")
    assert done.stdout.decode() == "['.git', 'a.txt', 'link', 'run.sh', 'src']\none\ntwo\n"
    assert tree(repo) == before


def test_a_program_that_is_only_in_the_directory(daemon, repo):
    done = millibox("run", "--socket", daemon.socket, "--dir", str(repo), "src/b.py")
    assert done.returncode == 125 and f"did you mean '{repo}/src/b.py'?".encode() in done.stderr, done
    done = millibox("run", "--socket", daemon.socket, "--dir", str(repo), "src/c.py")
    assert done.returncode == 125 and b"use -c to pass code" in done.stderr, done


CHANGES = """
import os
open('a.txt', 'a').write('three\\n')
os.mkdir('new'); open('new/c', 'w').write('c')
os.unlink('src/b.py'); os.rmdir('src')
os.chmod('run.sh', 0o644)
os.unlink('link'); os.symlink('run.sh', 'link')
"""


@pytest.mark.parametrize(("code", "flags", "output"), [
    ("for f in src/*.py; do echo \"$f\"; done", [], b"src/b.py\n"),
    ("x = 6 * 7\nprint(x)", [], b"42\n"),
    # A template's language counts, as in its other sessions.
    ("echo *.txt", ["--template", "shell"], b"a.txt\n"),
])
def test_the_language_of_code_is_guessed(daemon, repo, code, flags, output):
    done = millibox("run", "--socket", daemon.socket, "--dir", str(repo), *flags, "-c", code)
    assert (done.returncode, done.stdout) == (0, output), done


def test_changes_are_shown_and_not_made(run, repo):
    before = tree(repo)
    out = run(repo, CHANGES, "--diff").stdout.decode()
    assert out.splitlines()[:7] == ["D src/b.py", "D src/", "M a.txt", "M link", "A new/", "A new/c", "M run.sh (mode 755 -> 644)"]
    assert "+three" in out and "-x = 1" in out
    assert tree(repo) == before


def test_shown_changes_are_applied(run, repo):
    out = run(repo, CHANGES, "--apply").stdout.decode()
    assert out.splitlines() == ["D src/b.py", "D src/", "M a.txt", "M link", "A new/", "A new/c", "M run.sh (mode 755 -> 644)"]
    assert (repo / "a.txt").read_text() == "one\ntwo\nthree\n" and (repo / "new/c").read_text() == "c"
    assert not (repo / "src").exists() and os.readlink(repo / "link") == "run.sh"
    assert stat.S_IMODE((repo / "run.sh").stat().st_mode) == 0o644
    assert git(repo, "status", "--porcelain").split("\n")[:-1] == [" M a.txt", " M link", " M run.sh", " D src/b.py", "?? new/"]


def test_the_status_is_the_programs(run, repo):
    run(repo, "import sys; sys.exit(3)", "--diff", status=3)


HOSTILE = """
import os, shutil
for name in os.listdir('.'):
    shutil.rmtree(name) if os.path.isdir(name) and not os.path.islink(name) else os.unlink(name)
os.symlink({outside!r}, 'out')
os.symlink('../../x', 'up')
os.mkdir('sub'); os.symlink('..', 'sub/fine')
open('suid', 'w').write('x'); os.chmod('suid', 0o6777)
os.mkfifo('pipe')
os.makedirs('.git/hooks'); open('.git/hooks/pre-commit', 'w').write('evil'); open('.git/config', 'w').write('[core]\\nfsmonitor = evil\\n')
os.mkdir('a.txt'); open('a.txt/in', 'w').write('x')
"""


def test_a_hostile_program_changes_nothing_outside_and_nothing_that_was_not_shown(run, repo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    config = (repo / ".git/config").read_bytes()
    hooks = sorted(p.name for p in (repo / ".git/hooks").iterdir())
    done = run(repo, HOSTILE.format(outside=str(outside)), "--apply", status=1)
    shown = {line[2:].split(" (")[0].rstrip("/") for line in done.stdout.decode().splitlines()}
    messages = done.stderr.decode()
    assert "out: the link leads outside" in messages and "up: the link leads outside" in messages
    assert ".git/config: git would run it as you" in messages
    assert (repo / ".git/config").read_bytes() == config
    assert "pre-commit" not in [p.name for p in (repo / ".git/hooks").iterdir()] and hooks == sorted(p.name for p in (repo / ".git/hooks").iterdir())
    assert not (repo / "out").exists() and not (repo / "up").is_symlink() and os.readlink(repo / "sub/fine") == ".."
    assert stat.S_IMODE((repo / "suid").stat().st_mode) == 0o777 & ~UMASK
    assert not (repo / "pipe").exists()
    assert (repo / "a.txt/in").read_text() == "x"
    assert [p.name for p in tmp_path.iterdir()] == ["repo", "outside"] or sorted(p.name for p in tmp_path.iterdir()) == ["outside", "repo"]
    assert (outside / "file").read_text() == "mine"
    left = {str(p.relative_to(repo)) for p in repo.rglob("*")}
    assert {name for name in left if not name.startswith(".git")} <= shown


def test_a_repository_in_two_parts(run, repo):
    """Settings without a HEAD are files; the HEAD that would make them a repository is held back."""
    settings = "import os; os.makedirs('x/hooks'); open('x/config', 'w').write('[core]\\nfsmonitor = evil\\n')"
    run(repo, settings, "--apply")
    assert (repo / "x/config").exists(), "control"
    done = run(repo, "open('x/HEAD', 'w').write('ref: refs/heads/main\\n'); open('HEAD', 'w').write('a file')", "--apply", status=1)
    assert "x/HEAD: git would run it as you" in done.stderr.decode() and not (repo / "x/HEAD").exists()
    assert (repo / "HEAD").read_text() == "a file"


SETTINGS = "[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = ..\\nfsmonitor = \"touch {mark}; false\""

#: Runs that make a repository piece by piece: each of them changes what the one before has left.
PIECES = {
    "HEAD is a directory first": [
        "import os; os.makedirs('x/HEAD'); os.makedirs('x/objects'); os.makedirs('x/refs'); open('x/objects/a', 'w'); open('x/refs/a', 'w'); open('x/HEAD/a', 'w')",
        "open('x/config', 'w').write(config)",
        "import shutil; shutil.rmtree('x/HEAD'); open('x/HEAD', 'w').write('ref: refs/heads/main\\n')",
    ],
    "HEAD is a link first": [
        "import os; os.makedirs('x/objects'); os.makedirs('x/refs'); open('x/objects/a', 'w'); open('x/refs/a', 'w'); os.symlink('y', 'x/HEAD')",
        "open('x/config', 'w').write(config)",
        "import os; os.unlink('x/HEAD'); open('x/HEAD', 'w').write('ref: refs/heads/main\\n')",
    ],
    "HEAD is last": [
        "import os; os.makedirs('x/objects'); os.makedirs('x/refs'); open('x/objects/a', 'w'); open('x/refs/a', 'w'); open('x/config', 'w').write(config)",
        "import os; os.mkdir('x/HEAD')",
        "import os; os.path.isdir('x/HEAD') and os.rmdir('x/HEAD'); open('x/HEAD', 'w').write('ref: refs/heads/main\\n')",
    ],
    "HEAD goes while the settings come": [
        "import os; os.makedirs('x/objects'); os.makedirs('x/refs'); open('x/objects/a', 'w'); open('x/refs/a', 'w'); open('x/HEAD', 'w').write('ref: refs/heads/main\\n')",
        "import os; os.unlink('x/HEAD'); open('x/config', 'w').write(config)",
        "open('x/HEAD', 'w').write('ref: refs/heads/main\\n')",
    ],
}


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES)
def test_no_number_of_runs_makes_a_repository(daemon, repo, tmp_path, pieces):
    """A2: what the runs write together would run a command when git looks at it; the control is that they do without --apply's rules."""
    mark, control = tmp_path / "mark", tmp_path / "control"
    shutil.copytree(repo, control, symlinks=True)
    config = f"config = '{SETTINGS.format(mark=mark)}'\n"
    for piece in pieces:
        millibox("run", "--socket", daemon.socket, "--dir", str(repo), "--apply", "-l", "python", "-c", config + piece)
        subprocess.run(["python3", "-c", config + piece], cwd=control, check=True)
    git_status = ["git", "-c", "safe.directory=*", "status"]
    subprocess.run(git_status, cwd=repo / "x", env=environment(HOME=str(tmp_path)), capture_output=True, check=False)
    assert not mark.exists()
    subprocess.run(git_status, cwd=control / "x", env=environment(HOME=str(tmp_path)), capture_output=True, check=False)
    assert mark.exists(), "control"


def test_the_head_of_a_repository_may_change(run, repo):
    """A program may switch branches."""
    run(repo, "open('.git/HEAD', 'w').write('ref: refs/heads/other\\n')", "--apply")
    assert (repo / ".git/HEAD").read_text() == "ref: refs/heads/other\n"


#: What a program writes, who would run it, and whether the tree has something that makes it so.
RISKY = [
    (".envrc", "a shell"), ("sub/.envrc", "a shell"), ("sub/.vscode/tasks.json", "an editor"), (".VSCODE/Tasks.json", "an editor"),
    (".hg/hgrc", "hg"), ("sub/Makefile", "make"), ("lib/rules.mk", "make"), ("GNUmakefile", "make"), (".github/workflows/ci.yml", "a build service"),
    (".husky/pre-commit", "a hook manager"), (".pre-commit-config.yaml", "a hook manager"), (".bashrc", "a shell"), ("lib/a.pth", "Python"),
    ("sub/sitecustomize.py", "Python"), (".dir-locals.el", "an editor"), (".npmrc", "npm"), (".cargo/config.toml", "cargo"), (".gdbinit", "a debugger"),
    ("tools/hooks/post-commit", "git"), ("tools/monitor", "git"), (".gitshared", "git"),
]  # fmt: skip


def test_files_that_programs_run_by_themselves_are_held_back(run, repo):
    """A5. Each is named with who would run it, and applied if it was asked for."""
    with open(repo / ".git/config", "a", encoding="utf-8") as config:
        config.write('[core]\n\thooksPath = tools/hooks\n\tfsmonitor = "tools/monitor --now"\n[include]\n\tpath = ../.gitshared\n')
    names = [name for name, _ in RISKY]
    code = f"import os\nfor name in {names + ['fine.txt', 'sub/fine.py']!r}:\n    os.makedirs(os.path.dirname(name) or '.', exist_ok=True); open(name, 'w').write('x')"
    done = run(repo, code, "--apply", status=1)
    shown = {line[2:].split(" (")[0]: line for line in done.stdout.decode().splitlines()}
    said = done.stderr.decode()
    for name, who in RISKY:
        assert f"({who}" in shown[name] and "would run it" in shown[name], (name, shown[name])
        assert f"not applied: {name}: {who}" in said, name
        assert not (repo / name).exists(), name
    assert "--apply-risky applies it too" in said
    assert (repo / "fine.txt").exists() and (repo / "sub/fine.py").exists() and "fine" not in said
    run(repo, code, "--apply", "--apply-risky")
    assert all((repo / name).read_text() == "x" for name in names), "control: they can be applied"


@pytest.mark.parametrize("link", [".vscode", ".cargo", ".github", "Makefile", ".envrc"])
def test_links_in_place_of_such_files_are_held_back(run, repo, link):
    code = f"import os; os.makedirs('evil'); open('evil/tasks.json', 'w').write('x'); os.symlink('evil', {link!r})"
    done = run(repo, code, "--apply", status=1)
    assert f"not applied: {link}: " in done.stderr.decode() and not os.path.lexists(repo / link)
    assert (repo / "evil/tasks.json").exists(), "control"


def test_scripts_of_a_package_are_held_back_and_its_dependencies_are_not(run, repo):
    (repo / "package.json").write_text('{"name": "a", "scripts": {"test": "true"}}')
    change = "import json; p = json.load(open('package.json')); p{}; json.dump(p, open('package.json', 'w'))"
    run(repo, change.format("['dependencies'] = {'b': '1'}"), "--apply")
    assert '"b"' in (repo / "package.json").read_text(), "control"
    done = run(repo, change.format("['scripts']['postinstall'] = 'evil'"), "--apply", status=1)
    assert "package.json: npm would run its scripts as you" in done.stderr.decode()
    done = run(repo, "open('package.json', 'w').write('{\"scripts\": {}, \"scripts\": {\"install\": \"evil\"}}')", "--apply", status=1)
    assert "npm" in done.stderr.decode() and "evil" not in (repo / "package.json").read_text()


MODES = """
import os
os.umask(0)
os.chmod('a.txt', 0o666); open('a.txt', 'a').write('x')
os.chmod('secret', 0o777)
os.chmod('run.sh', 0o666)
os.chmod('src', 0o777)
open('new.txt', 'w').write('n'); os.chmod('new.txt', 0o666)
open('new.sh', 'w').write('n'); os.chmod('new.sh', 0o777)
os.makedirs('made', exist_ok=True); os.chmod('made', 0o777)
"""


def modes(repo, *names):
    return [oct(stat.S_IMODE((repo / name).stat().st_mode)) for name in names]


def test_modes_are_shown_and_only_those_that_were_asked_for_change(run, repo):
    """A3: nothing gets wider for others than it was, or than the umask says."""
    names = ["a.txt", "secret", "run.sh", "src", "new.txt", "new.sh", "made"]
    (repo / "secret").write_text("s")
    (repo / "secret").chmod(0o600)
    (repo / "a.txt").chmod(0o640)
    (repo / "src").chmod(0o750)
    os.umask(0o027)
    try:
        done = run(repo, MODES, "--apply")
    finally:
        os.umask(UMASK)
    lines = done.stdout.decode().splitlines()
    for line in ("M a.txt (mode 640 -> 666)", "M secret (mode 600 -> 777)", "M run.sh (mode 755 -> 666)", "M src/ (mode 750 -> 777)", "A new.sh (mode 777)", "A new.txt"):
        assert line in lines, (line, lines)
    assert modes(repo, *names) == ["0o640", "0o700", "0o644", "0o750", "0o640", "0o750", "0o750"]
    assert (repo / "a.txt").read_text().endswith("x")
    # The control: asked for, all of them change.
    run(repo, MODES, "--apply", "--apply-modes")
    assert modes(repo, *names) == ["0o666", "0o777", "0o666", "0o777", "0o666", "0o777", "0o777"]


CHAIN = """
import os
os.makedirs('a/b'); os.symlink('../..', 'a/b/top'); os.symlink('a/b/top/../outside', 'out'); os.symlink('a/b/top/src', 'in')
"""


def test_a_link_does_not_lead_outside_by_another(run, repo, tmp_path):
    (tmp_path / "outside").write_text("mine")
    done = run(repo, CHAIN, "--apply", status=1)
    assert done.stderr.decode().splitlines() == ["millibox: not applied: out: the link leads outside"]
    assert not os.path.lexists(repo / "out")
    assert os.readlink(repo / "a/b/top") == "../.." and (repo / "in/b.py").read_text() == "x = 1\n"


#: A repository whose setting runs a command, and ways to make git use it.
PLANT = """
import os, shutil
def plant(path):
    shutil.copytree('.git', path, dirs_exist_ok=True)
    open(path + '/config', 'w').write('[core]\\nrepositoryformatversion = 0\\nbare = false\\nworktree = ..\\nfsmonitor = "touch {mark}; false"\\n')
    return path
"""


@pytest.mark.parametrize("way, where", [
    ("open('.git/commondir', 'w').write('../' + plant('evil'))", "."),
    ("os.mkdir('sub'); open('sub/.git', 'w').write('gitdir: ../' + plant('evil'))", "sub"),
    ("os.mkdir('sub'); plant('evil'); os.symlink('../evil', 'sub/.git')", "sub"),
    ("plant('sub/.git')", "sub"),
    ("plant('bare')", "bare"),
])
def test_git_runs_nothing_that_a_program_left(run, repo, tmp_path, way, where):
    mark, control = tmp_path / "mark", tmp_path / "control"
    shutil.copytree(repo, control, symlinks=True)
    code = PLANT.format(mark=mark) + way
    done = run(repo, code, "--apply", status=1)
    assert "git would run it as you" in done.stderr.decode()
    subprocess.run(["git", "status"], cwd=repo / where, env=environment(HOME=str(tmp_path)), capture_output=True, check=False)
    assert not mark.exists()
    subprocess.run(["python3", "-c", code], cwd=control, check=True)
    subprocess.run(["git", "status"], cwd=control / where, env=environment(HOME=str(tmp_path)), capture_output=True, check=False)
    assert mark.exists()  # the control: outside of a box it would have run


def test_what_changed_meanwhile_is_left_alone(daemon, repo):
    """The program waits for a file that comes when the directory has been changed."""
    code = """
import os, time
print('ready', flush=True)
while not os.path.exists('go'): time.sleep(0.01)
for name in ('a.txt', 'mine', 'fresh', 'src/b.py'): open(name, 'w').write('theirs')
os.unlink('run.sh')
"""
    line = [str(BUILD / "millibox"), "run", "--socket", daemon.socket, "--dir", str(repo), "--apply", "-l", "python", "-c", code]
    process = subprocess.Popen(line, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    (repo / "a.txt").write_text("edited")
    (repo / "mine").write_text("mine")
    (repo / "run.sh").chmod(0o700)
    (repo / "src").rename(repo / "moved")
    (repo / "src").symlink_to("moved")
    with daemon.client() as c:
        (session,) = c.get("/api/v1/sessions").json["sessions"]
        c.request("PUT", f"/api/v1/sessions/{session['session_id']}/files/go", body=b"")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 1, (out, err)
    assert err.count(b"has changed meanwhile") == 3 and b"src/b.py: its directory is missing" in err, err
    assert (repo / "a.txt").read_text() == "edited" and (repo / "mine").read_text() == "mine"
    assert (repo / "run.sh").exists() and (repo / "moved/b.py").read_text() == "x = 1\n"
    assert (repo / "fresh").read_text() == "theirs"


def test_unusual_permissions_are_kept(run, repo):
    (repo / "a.txt").chmod(0o664)
    assert run(repo, "open('a.txt', 'a').write('x')", "--apply").stdout == b"M a.txt\n"
    assert stat.S_IMODE((repo / "a.txt").stat().st_mode) == 0o664


def test_wrong_use_is_explained(daemon, tmp_path):
    at = ("run", "--socket", daemon.socket)
    assert b"--dir" in millibox(*at, "--diff", "-c", "1").stderr
    assert millibox(*at, "--dir", str(tmp_path / "none"), "-c", "1").returncode == 2


def test_a_diff_does_not_control_the_terminal(daemon, repo, tmp_path):
    """Escape sequences of a hostile file are replaced on a terminal, and kept for a file or a pipe."""
    code = r"open('evil.txt', 'wb').write(b'a\tb\x1b]0;title\x07\x1b[2Jend \x9b2J \xe2\x80\xae. \xc3\xa9\n')"
    words = [str(BUILD / "millibox"), "run", "--socket", daemon.socket, "--dir", str(repo), "--diff", "-l", "python", "-c", code]
    raw = subprocess.run(words, env=environment(), capture_output=True, check=True).stdout
    assert b"+a\tb\x1b]0;title\x07\x1b[2Jend \x9b2J \xe2\x80\xae. \xc3\xa9\n" in raw  # the probe works
    main, terminal = pty.openpty()
    with open(tmp_path / "shown", "wb") as shown:
        process = subprocess.Popen(words, env=environment(), stdout=terminal)
        os.close(terminal)
        try:
            while piece := os.read(main, 4096):
                shown.write(piece)
        except OSError:
            pass  # the other end is closed
        os.close(main)
        assert process.wait() == 0
    text = (tmp_path / "shown").read_bytes()
    assert b"+a" in text and b"b?]0;title??[2Jend ?2J ?. \xc3\xa9" in text and b"\x1b" not in text, text
