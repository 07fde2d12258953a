# SPDX-License-Identifier: Apache-2.0
"""What the agent gives to a program and keeps from it, seen through a whole daemon."""


def test_shell_opens_its_stdio_by_name(client):
    r = client.shell(
        "cat /dev/stdin > /dev/stdout; echo err > /dev/stderr; echo a > /proc/self/fd/1; echo b | tee /dev/stderr",
        stdin="in\n",
    )
    assert (r["stdout"], r["stderr"]) == ("in\na\nb\n", "err\nb\n"), r


def test_python_opens_its_stdio_by_name(client):
    r = client.python(
        "d=open('/dev/stdin').read()\nopen('/dev/stdout','w').write(d)\nopen('/dev/stderr','w').write('e')", stdin="x"
    )
    assert (r["stdout"], r["stderr"]) == ("x", "e"), r


def test_stdin_that_is_empty_can_be_opened_by_name(client):
    r = client.shell("cat /dev/stdin; echo $?")
    assert r["stdout"] == "0\n", r
