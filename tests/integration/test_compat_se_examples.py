# SPDX-License-Identifier: Apache-2.0
"""The examples of the shared environment server and of its client, as that client sends them: it reads `result`."""

import itertools
import subprocess

import pytest

pytestmark = pytest.mark.phases("system")

SE = "/workspace/se"
names = itertools.count()


class Sandbox:
    """Sends what the client sends, and reads only what it reads."""

    def __init__(self, client):
        self.client, self.id = client, f"example-{next(names)}"

    def result(self, answer):
        assert answer.status == 200, answer
        return answer.json["result"]

    def post(self, verb, body):
        return self.result(self.client.post(f"{SE}/{verb}/{self.id}", body))

    def execute(self, command, *args):
        done = self.post("execute", {"command": command, "args": list(args)})
        assert {"stdout", "stderr", "returncode"} <= set(done), done
        return done

    def execute_code(self, code, filename=None, args=None, script_type="python", output_params=None):
        return self.post("execute_code", {"code": code, "filename": filename, "args": args or [], "script_type": script_type,
                                          "output_params": output_params or []})

    def upload(self, name, data):
        edge = "edge"
        body = (f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
                "Content-Type: application/octet-stream\r\n\r\n").encode() + data + f"\r\n--{edge}--\r\n".encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={edge}"}
        return self.result(self.client.post(f"{SE}/upload/{self.id}", body, headers=headers))


@pytest.fixture
def sandbox(client):
    made = Sandbox(client)
    yield made
    client.request("DELETE", f"{SE}/session/{made.id}")


def test_se_readme(sandbox):
    assert sandbox.execute_code("print('Hello, World!')", filename="test.py")["stdout"] == "Hello, World!\n"
    assert "test.py" in sandbox.execute("ls", "-l")["stdout"]


def test_se_examples_with_files(sandbox, client):
    made = sandbox.post("create", {"content": "print('Hello from SharedEnv!')", "filename": "hello.py", "mode": 0o644})
    assert (made["filename"], made["size"]) == ("hello.py", 30)
    listed = sandbox.result(client.get(f"{SE}/files/{sandbox.id}"))["files"]
    assert [f["filename"] for f in listed] == ["hello.py"]
    read = sandbox.result(client.get(f"{SE}/readfile/{sandbox.id}/hello.py?offset=0&buffer_size=4096"))
    assert read["content"] == "print('Hello from SharedEnv!')" and read["is_eof"]
    data = b"This is a test file for upload/download"
    assert sandbox.upload("test_upload.txt", data)["filename"] == "test_upload.txt"
    assert client.get(f"{SE}/download/{sandbox.id}/test_upload.txt").body == data
    missing = client.get(f"{SE}/readfile/{sandbox.id}/non_existent.txt")
    assert missing.status >= 400 and isinstance(missing.json["detail"], str)
    status = sandbox.result(client.get(f"{SE}/status/{sandbox.id}"))
    assert status["exists"] and {"filename", "size", "type"} <= set(status["files"][0])


CODE = {
    "function": ('\ndef greet(name):\n    return f"Hello, {name}!"\n\nresult = greet("SharedEnv")\nprint(result)\n',
                 {"filename": "greet.py"}, "Hello, SharedEnv!\n"),
    "arguments": ('\nimport sys\n\nprint(f"Hello, {sys.argv[1]}!")\n', {"args": ["SharedEnv"]}, "Hello, SharedEnv!\n"),
}


@pytest.mark.parametrize("name", CODE)
def test_se_examples_with_code(sandbox, name):
    code, fields, printed = CODE[name]
    done = sandbox.execute_code(code, **fields)
    assert (done["stdout"], done["stderr"], done["returncode"]) == (printed, "", 0)


def test_se_example_with_variables(sandbox):
    code = '\na = 1\nb = 2\nc = "I am a string"\nd = [1, 2, 3]\ne = {"a": 1, "b": 2, "c": "I am a string", "d": [1, 2, 3]}\n'
    done = sandbox.execute_code(code, output_params=["a", "b", "c", "d", "e"])
    assert done["output_variables"] == {"a": 1, "b": 2, "c": "I am a string", "d": [1, 2, 3],
                                        "e": {"a": 1, "b": 2, "c": "I am a string", "d": [1, 2, 3]}}


def test_se_example_with_an_error(sandbox):
    done = sandbox.execute_code("\nprint(1/0)\n")
    assert done["returncode"] == 1 and "ZeroDivisionError: division by zero" in done["stderr"]


@pytest.mark.skipif(subprocess.run(["/usr/bin/python3", "-c", "import pandas"], capture_output=True).returncode != 0,
                    reason="the host has no pandas")
def test_se_example_with_pandas(sandbox):
    """The beginning of its analysis, with the text in Chinese that it prints."""
    done = sandbox.execute_code("""
import pandas as pd
import numpy as np

np.random.seed(42)
data = {
    'name': ['Alice', 'Bob', 'Charlie', 'Diana', 'Eve', 'Frank', 'Grace', 'Henry'],
    'age': np.random.randint(20, 60, 8),
    'salary': np.random.randint(30000, 100000, 8),
}

df = pd.DataFrame(data)
print("=== 数据概览 ===")
print(f"数据形状: {df.shape}")
""", filename="pandas_analysis.py")
    assert done["stdout"] == "=== 数据概览 ===\n数据形状: (8, 3)\n", done
