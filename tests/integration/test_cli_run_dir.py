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
    assert out.splitlines()[:7] == ["D src/b.py", "D src/", "M a.txt", "M link", "A new/", "A new/c", "M run.sh"]
    assert "+three" in out and "-x = 1" in out
    assert tree(repo) == before


def test_shown_changes_are_applied(run, repo):
    out = run(repo, CHANGES, "--apply").stdout.decode()
    assert out.splitlines() == ["D src/b.py", "D src/", "M a.txt", "M link", "A new/", "A new/c", "M run.sh"]
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
    shown = {line[2:].rstrip("/") for line in done.stdout.decode().splitlines()}
    messages = done.stderr.decode()
    assert "out: the link leads outside" in messages and "up: the link leads outside" in messages
    assert ".git/config: git would run it as you" in messages
    assert (repo / ".git/config").read_bytes() == config
    assert "pre-commit" not in [p.name for p in (repo / ".git/hooks").iterdir()] and hooks == sorted(p.name for p in (repo / ".git/hooks").iterdir())
    assert not (repo / "out").exists() and not (repo / "up").is_symlink() and os.readlink(repo / "sub/fine") == ".."
    assert stat.S_IMODE((repo / "suid").stat().st_mode) == 0o777
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
