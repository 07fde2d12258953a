# SPDX-License-Identifier: Apache-2.0
"""RES-5: files that a program or a caller leaves where runners or shells would look for code are not executed by ours."""

import sys

import pytest
from support.sessions import Session

pytestmark = pytest.mark.phases("system", "pool", "user", "subid")

MARK = "/workspace/planted-ran"
PYTHON = f"open({MARK!r}, 'a').write(__name__ + ' ')\n"
SHELL = f"echo shell >> {MARK}\n"
USER_SITE = f".local/lib/python3.{sys.version_info.minor}/site-packages"
# Whatever an interpreter reads by itself, and modules that the runners import.
PLANTED = {
    **{name: PYTHON for name in (
        "sitecustomize.py", "usercustomize.py", "run.py", "session.py", "handler.py", "report.py", "prepare.py", "_ast.py",
        "traceback.py", "reprlib.py", "linecache.py", "socket.py", "json.py", "ast.py", "signal.py", "encodings/__init__.py",
        f"{USER_SITE}/usercustomize.py")},
    "pyvenv.cfg": "include-system-site-packages = true\n",
    f"{USER_SITE}/planted.pth": f"import builtins; open({MARK!r}, 'a').write('pth ')\n",
    **{name: SHELL for name in (".bashrc", ".bash_profile", ".profile", ".bash_login", ".shrc", ".env", ".pythonrc")},
}
LOOK = f"import os\nprint(os.path.exists({MARK!r}) and open({MARK!r}).read())"


def test_one_execution_does_not_run_what_was_planted(client):
    assert client.python(LOOK, files=PLANTED)["stdout"] == "False\n"
    assert client.shell(f"test -e {MARK} && cat {MARK}; echo end", files=PLANTED)["stdout"] == "end\n"


def test_control_a_plain_interpreter_runs_it(client):
    """The planted files are where a careless runner finds them."""
    result = client.shell(f"cd /workspace; python3 -c 'import traceback'; cat {MARK}", files=PLANTED)
    assert "traceback" in result["stdout"].split(), result
    result = client.shell(f"bash -lc true; cat {MARK}", files=PLANTED)
    assert "shell" in result["stdout"].split(), result


@pytest.mark.parametrize("language", ["python", "shell"])
def test_a_restarted_runner_does_not_run_what_was_planted(client, language):
    session = Session(client, mode="persistent", language=language)
    session.run("0" if language == "python" else "true", files=PLANTED)
    ended = session.run("import os; os.kill(os.getpid(), 9)" if language == "python" else "kill -9 $PPID $$")
    assert ended["status"] != "success", ended
    look = LOOK if language == "python" else f"test -e {MARK} && cat {MARK} || echo False"
    assert session.run(look)["stdout"] == "False\n"
    session.delete()
