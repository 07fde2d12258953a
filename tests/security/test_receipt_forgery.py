# SPDX-License-Identifier: Apache-2.0
"""A receipt holds for its own execution only, and no change of it goes unnoticed."""

import base64
import copy
import hashlib
import json
import subprocess

import pytest

from support.daemon import BUILD
from support.sessions import Session

pytestmark = pytest.mark.phases("system")


@pytest.fixture(scope="module")
def signed(daemon):
    with daemon.client() as client:
        key = client.get("/api/v1/receipts/key").json
        yield key, client.python("print(1)", receipt="signed"), client.python("print(2)", receipt="signed")


def verify(key, thing, *words):
    return subprocess.run([BUILD / "millibox", "receipt", "verify", "--key", key, *words, "-"], input=json.dumps(thing),
                          capture_output=True, text=True, timeout=60)


def changed(receipt, path, value):
    forged = copy.deepcopy(receipt)
    at = forged
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return forged


def test_the_genuine_one_holds(signed):
    key, result, _ = signed
    assert verify(key["public_key"], result).returncode == 0
    assert verify(key["public_key"], result["receipt"]).returncode == 0


@pytest.mark.parametrize("path, value", [
    (("payload", "execution_id"), "exec_20200101_00000000"),
    (("payload", "tenant"), "other"),
    (("payload", "code_sha256"), "0" * 64),
    (("payload", "completed_at"), "2020-01-01T00:00:00.000Z"),
    (("payload", "outcome", "status"), "failed"),
    (("payload", "outcome", "exit_code"), 0.0),
    (("payload", "outcome", "stdout_sha256"), "0" * 64),
    (("payload", "isolation", "mode"), "other"),
    (("payload", "isolation", "layers"), []),
    (("payload", "isolation", "limits", "memory_bytes"), 1),
    (("payload", "isolation", "network"), "host"),
    (("payload", "more"), 1),
    (("more",), 1),
    (("format",), "millibox-receipt-2"),
    (("key_id",), "0" * 16),
    (("signature",), base64.b64encode(bytes(64)).decode()),
    (("signature",), ""),
    (("format",), "millibox-receipt-1\0x"),
    (("payload",), []),
])
def test_a_changed_receipt_does_not_hold(signed, path, value):
    key, result, _ = signed
    done = verify(key["public_key"], changed(result["receipt"], path, value))
    assert done.returncode in (1, 2) and not done.stdout, done


def test_a_receipt_of_another_execution(signed):
    key, one, other = signed
    swapped = {**one, "receipt": other["receipt"]}
    done = verify(key["public_key"], swapped)
    assert done.returncode == 1 and "issued for another result" in done.stderr, done
    assert verify(key["public_key"], one["receipt"], "--execution", other["execution_id"]).returncode == 1


def test_a_result_that_claims_more_than_its_receipt(signed):
    key, result, _ = signed
    for member, value in (("status", "failed"), ("status", result["status"] + "\0x"), ("status", None), ("exit_code", 1),
                          ("execution_id", result["execution_id"] + "\0x"), ("stdout", "2\n"), ("stdout", None),
                          ("stdout", "approved\ufffd"), ("stdout", "1\n\ufffd"), ("stdout", "1\n\0"), ("stderr", "!"), ("stderr", "\ufffd"),
                          ("isolation", {**result["isolation"], "network": "host"})):
        assert verify(key["public_key"], {**result, member: value}).returncode == 1, (member, value)


# What the program writes to stdout, and the text in the result.
@pytest.mark.parametrize("written, text", [
    (r"b'a\xff\0'", "a\ufffd\0"), (r"b'\xe2\x82'", "\ufffd"), (r"b'a\0b'", "a\0b"), (r"b'\xef\xbf\xbd'", "\ufffd"), ("b''", ""),
])
def test_the_text_of_the_output_is_signed(daemon, written, text):
    """Also where U+FFFD stands for bytes that are not valid UTF-8."""
    with daemon.client() as client:
        key = client.get("/api/v1/receipts/key").json["public_key"]
        code = f"import sys; n = sys.STREAM.buffer.write({written})"
        for stream in ("stdout", "stderr"):
            result = client.python(code.replace("STREAM", stream), receipt="signed")
            assert result[stream] == text
            done = verify(key, result)
            assert (done.returncode, done.stderr) == (0, ""), done
            for forged in ("approved\ufffd", text + "\ufffd", text + "\0", text + "a", "\ufffd\ufffd"):
                done = verify(key, {**result, stream: forged})
                assert done.returncode == 1 and "invalid receipt" in done.stderr and not done.stdout, done


def test_text_that_the_limit_cuts_inside_a_character_is_signed(daemon):
    with daemon.client() as client:
        key = client.get("/api/v1/receipts/key").json["public_key"]
        cut = client.python("print('\u20ac' * 1000)", receipt="signed", resources={"max_output": 1000})
    assert cut["stdout_truncated"] and cut["stdout"] == "\u20ac" * 333 + "\ufffd", cut
    assert verify(key, cut).returncode == 0
    assert verify(key, {**cut, "stdout": "\u20ac" * 333 + "\ufffd" * 2}).returncode == 1


def test_the_text_of_a_session_is_signed(daemon):
    with daemon.client() as client:
        key = client.get("/api/v1/receipts/key").json["public_key"]
        session = Session(client, mode="persistent")
        try:
            result = session.run(r"import sys; n = sys.stdout.buffer.write(b'a\xff')", receipt="signed")
            stored = client.get(f"/api/v1/executions/{result['execution_id']}").json
        finally:
            session.delete()
    assert result["stdout"] == "a\ufffd", result
    for given in (result, stored):
        assert verify(key, given).returncode == 0
        assert verify(key, {**given, "stdout": "b\ufffd"}).returncode == 1


def test_the_text_without_the_markers_of_a_handler_is_signed(daemon):
    code = "def handler(event):\n    print('a\\n===SANDBOX_RESULT===\\n1\\n===SANDBOX_RESULT_END===\\nb')"
    with daemon.client() as client:
        key = client.get("/api/v1/receipts/key").json["public_key"]
        answer = client.post("/api/v1/execute", {"handler_code": code, "receipt": "signed"})
    assert answer.status == 200 and answer.json["stdout"] == "a\nb\n", answer.json
    assert verify(key, answer.json).returncode == 0
    assert verify(key, {**answer.json, "stdout": "a\n"}).returncode == 1


def test_a_receipt_without_hashes_of_the_text(signed, tmp_path):
    """Of an earlier daemon: output that is valid UTF-8 is compared by its bytes, other output is refused."""
    def openssl(*words):
        return subprocess.run(["openssl", *words], cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout

    openssl("genpkey", "-algorithm", "ed25519", "-out", "key")
    public = openssl("pkey", "-in", "key", "-pubout", "-outform", "DER")[-32:]
    _, result, _ = signed

    def sign(printed):
        payload = copy.deepcopy(result["receipt"]["payload"])
        outcome = payload["outcome"]
        del outcome["stdout_text_sha256"], outcome["stderr_text_sha256"]
        outcome["stdout_sha256"] = hashlib.sha256(printed).hexdigest()
        (tmp_path / "message").write_text("millibox-receipt-1\n" + json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
        return {"format": "millibox-receipt-1", "key_id": hashlib.sha256(public).hexdigest()[:16], "payload": payload,
                "signature": base64.b64encode(openssl("pkeyutl", "-sign", "-rawin", "-inkey", "key", "-in", "message")).decode()}

    def check(printed, stdout):
        return verify(base64.b64encode(public).decode(), {**result, "stdout": stdout, "receipt": sign(printed)}).returncode

    assert check(b"1\n", "1\n") == 0 and check("\ufffd".encode(), "\ufffd") == 0
    assert check(b"1\n", "approved\ufffd") == 1 and check(b"a\xff", "a\ufffd") == 1


def test_other_code(signed, tmp_path):
    key, result, _ = signed
    (tmp_path / "a").write_text("print(1)")
    (tmp_path / "b").write_text("print(2)")
    assert verify(key["public_key"], result, "--code", str(tmp_path / "a")).returncode == 0
    assert verify(key["public_key"], result, "--code", str(tmp_path / "b")).returncode == 1


def test_duplicate_members_are_refused(signed):
    key, result, _ = signed
    text = json.dumps(result["receipt"])
    doubled = text[:-1] + ', "payload": ' + json.dumps({**result["receipt"]["payload"], "tenant": "other"}) + "}"
    done = subprocess.run([BUILD / "millibox", "receipt", "verify", "--key", key["public_key"], "-"], input=doubled,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 2


def test_keys_of_others(signed):
    """Also one that the forger chose: a receipt carries no key that would be believed."""
    key, result, _ = signed
    other = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    assert verify(other, result).returncode == 1
    assert verify("nonsense", result).returncode == 2
    assert verify("", result).returncode != 0
    assert verify(base64.b64encode(bytes(32)).decode(), result).returncode == 1


def test_a_program_cannot_get_a_receipt_signed(daemon):
    """What a program says never becomes part of the payload, except as hashes."""
    with daemon.client() as client:
        code = "import json; print(json.dumps({'format': 'millibox-receipt-1', 'payload': {'tenant': 'root'}, 'signature': ''}))"
        receipt = client.python(code, receipt="signed")["receipt"]
        assert "root" not in json.dumps(receipt["payload"]["tenant"])
        assert set(receipt["payload"]) == {"execution_id", "session_id", "tenant", "language", "code_sha256", "created_at",
                                           "started_at", "completed_at", "outcome", "isolation"}
