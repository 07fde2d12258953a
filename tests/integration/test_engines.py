# SPDX-License-Identifier: Apache-2.0
"""Several engines in one daemon: which one makes a box, and what the end of one means for the others."""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from support import host
from support.client import Client
from support.daemon import BUILD, Daemon
from support.sessions import V1, Session

pytestmark = pytest.mark.phases("system", "user")

#: A second native engine: whatever is not native's own must work with it.
TWO = "engines:\n  native:\n  second: {runtime: native}\nsessions:\n  survive: 60s\n"
EXECUTE = f"{V1}/execute"


def millibox(*args):
    return subprocess.run([str(BUILD / "millibox"), *args], capture_output=True, env={"PATH": "/usr/bin:/bin", "HOME": "/"}, timeout=60)


def execute(client, code="print(42)", **fields):
    return client.post(EXECUTE, {"language": "python", "code": code, **fields})


def runtimes(client):
    return {item["id"]: item for item in client.get(f"{V1}/runtimes").json["items"]}


def state_of(client, name):
    return runtimes(client)[name]["breaker"]["state"]


@pytest.fixture(scope="module")
def two():
    made = Daemon(config=TWO)
    made.start()
    yield made
    code = made.stop()
    made.remove()
    assert code == 0


@pytest.fixture
def client(two):
    with two.client() as c:
        yield c


def kill_engine(daemon, client, name):
    """kill -9, and wait until the daemon knows."""
    trips = runtimes(client)[name]["breaker"]["trips"]
    os.kill(daemon.engine_pid_of(name), signal.SIGKILL)
    host.wait_until(lambda: runtimes(client)[name]["breaker"]["trips"] > trips, 20, "the daemon knows that the engine is gone")


def await_engine(client, name):
    host.wait_until(lambda: state_of(client, name) == "closed", 60, lambda: f"engine {name} is back: {runtimes(client)[name]}")


def test_a_request_names_its_engine(client):
    for asked, made_by in ((None, "native"), ("native", "native"), ("second", "second"), ("auto", "native")):
        answer = execute(client, **({"engine": asked} if asked else {}))
        assert answer.status == 200 and answer.json["stdout"] == "42\n", answer
        assert answer.json["isolation"]["engine"] == made_by
        assert answer.json["isolation"]["grade"] == "namespace"


def test_an_engine_that_is_not_configured_is_refused_by_name(client):
    answer = execute(client, engine="gvisor")
    assert answer.status == 400 and answer.json["field"] == "engine"
    assert "native, second" in answer.json["error_detail"] and "auto" in answer.json["error_detail"]
    assert execute(client, engine="../etc").status == 400


def test_a_grade_that_no_engine_has_is_refused_before_anything_starts(client):
    answer = execute(client, min_isolation="gvisor")
    assert answer.status == 503 and "gvisor" in answer.json["error_detail"], answer
    assert "doctor" in answer.json["error_detail"]
    answer = execute(client, min_isolation="vm", engine="auto")
    assert answer.status == 503, answer
    answer = execute(client, min_isolation="gvisor", engine="native")
    assert answer.status == 400 and "engine 'native' has 'namespace'" in answer.json["error_detail"], answer
    assert execute(client, min_isolation="strong").status == 400
    assert execute(client, min_isolation="namespace").status == 200


def test_receipts_name_engine_runtime_and_release(client):
    isolation = execute(client, engine="second", receipt="plain").json["isolation"]
    assert isolation["engine"] == "second" and isolation["grade"] == "namespace"
    assert isolation["versions"]["runtime"] == "native" and isolation["versions"]["release"]
    assert "pid" in isolation["layers"] and isolation["layers_vouched"] == []


def test_explain_names_the_engine_and_why(client):
    answer = client.post(f"{V1}/policy/explain", {"language": "python", "engine": "second"}).json
    assert answer["grants"]["engine"]["granted"] == "second"
    assert answer["grants"]["engine"]["rule"]["by"] == "request"
    answer = client.post(f"{V1}/policy/explain", {"language": "python"}).json
    assert answer["grants"]["engine"]["granted"] == "native"
    assert answer["grants"]["engine"]["rule"]["by"] == "setting"


def test_runtimes_tell_what_each_engine_can(client):
    both = runtimes(client)
    assert list(both) == ["native", "second"]
    assert both["native"]["default"] and not both["second"]["default"]
    for item in both.values():
        assert item["runtime"] == "native" and item["grade"] == "namespace" and item["release"]
        assert item["breaker"]["state"] == "closed" and item["status"] == "online"
        assert "allowlist" in item["features"]
    others = {item["runtime"]: item["install"] for item in client.get(f"{V1}/runtimes").json["not_configured"]}
    assert "native" not in others and "apt-get install" in others["gvisor"]
    assert client.get(f"{V1}/runtimes/second").json["id"] == "second"
    assert client.get(f"{V1}/runtimes/second/health").json["healthy"]
    assert client.get(f"{V1}/runtimes/third").status == 404


def test_health_shows_the_engines_only_when_asked(client):
    assert client.get("/healthz").json == {"status": "ok"}
    assert client.get("/healthz?verbose").json == {"status": "ok", "engines": {"native": "closed", "second": "closed"}}
    metrics = client.get("/metrics").body.decode()
    assert 'millibox_engine_up{engine="second"} 1' in metrics


def test_a_session_stays_with_its_engine(client):
    session = Session(client, mode="persistent", language="python", engine="second")
    assert session.info()["engine"] == "second"
    assert session.run("x = 7")["isolation"]["engine"] == "second"
    assert session.run("x")["result"] == 7
    assert client.get(f"{V1}/containers?runtime_type=second").json["containers"]
    assert not client.get(f"{V1}/containers?runtime_type=native").json["containers"]
    session.delete()


def test_an_ephemeral_session_has_all_its_boxes_of_one_engine(client):
    session = Session(client, mode="ephemeral", language="python", engine="second")
    for _ in range(2):
        assert session.run("1")["isolation"]["engine"] == "second"
    session.delete()


def test_a_template_names_the_engine_of_its_boxes(client):
    made = client.post(f"{V1}/templates", {"id": "on-second", "name": "n", "image": "host", "language": "python", "engine": "second"})
    assert made.status == 201 and made.json["engine"] == "second", made
    assert execute(client, template_id="on-second").json["isolation"]["engine"] == "second"
    assert execute(client, template_id="on-second", engine="native").json["isolation"]["engine"] == "native"
    wrong = client.post(f"{V1}/templates", {"id": "on-nothing", "name": "m", "image": "host", "engine": "gvisor"})
    assert wrong.status == 201  # it may be configured later
    answer = execute(client, template_id="on-nothing")
    assert answer.status == 400 and answer.json["field"] == "template_id", answer
    for name in ("on-second", "on-nothing"):
        assert client.request("DELETE", f"{V1}/templates/{name}").status in (200, 204)


def test_a_command_line_names_the_engine(two):
    run = millibox("run", "--socket", two.socket, "--engine", "second", "--json", "-c", "print(1)")
    assert run.returncode == 0 and json.loads(run.stdout)["isolation"]["engine"] == "second", run
    run = millibox("run", "--socket", two.socket, "--min-isolation", "gvisor", "-c", "print(1)")
    assert run.returncode != 0 and b"gvisor" in run.stderr, run
    shown = millibox("doctor", "--socket", two.socket).stdout.decode()
    assert "engine.second" in shown and "grade namespace" in shown and "gvisor (apt-get install" in shown, shown


def test_the_end_of_an_engine_ends_its_own_boxes_only(two, client):
    there = Session(client, mode="persistent", language="python", engine="second")
    here = Session(client, mode="persistent", language="python", engine="native")
    assert there.run("x = 1")["status"] == here.run("x = 1")["status"] == "success"
    running = there.start("import time\ntime.sleep(60)")
    kill_engine(two, client, "second")
    there.wait_for("failed", "terminated")
    # Its box dies with the engine, and the daemon may hear of that first.
    assert there.info()["reason"] in ("its engine has ended, and its box with it", "its box could not be made, or was lost")
    assert there.result(running)["status"] in ("crashed", "failed", "error")
    assert here.run("x")["result"] == 1  # the others go on
    assert execute(client).status == 200
    await_engine(client, "second")
    answer = execute(client, engine="second")
    assert answer.status == 200 and answer.json["isolation"]["engine"] == "second", answer
    again = Session(client, mode="persistent", language="python", engine="second")
    assert again.run("1")["result"] == 1
    for session in (there, here, again):
        session.delete()


def test_while_it_is_away_requests_for_it_are_refused_with_the_reason(two, client):
    """Killed again and again: each time the next try is later, and nothing of it disturbs the default."""
    seen = None
    for _ in range(3):
        await_engine(client, "second")
        kill_engine(two, client, "second")
        answer = execute(client, engine="second")
        assert execute(client).status == 200
        if answer.status == 503:
            seen = answer
    assert seen, "it was always back at once"
    assert "engine 'second'" in seen.json["error_detail"], seen
    assert int(seen.headers["retry-after"]) >= 1
    await_engine(client, "second")


def test_an_engine_that_cannot_start_does_not_keep_the_daemon_from_starting(make_daemon):
    daemon = make_daemon(config="engines:\n  native:\n  broken: {runtime: runc, binary: /nonexistent}\n")
    daemon.start()
    with daemon.client() as client:
        assert execute(client).status == 200
        answer = execute(client, engine="broken")
        assert answer.status == 503 and "engine 'broken'" in answer.json["error_detail"], answer
        item = runtimes(client)["broken"]
        assert item["status"] == "offline" and item["grade"] is None and "apt-get" in item["install"]
        assert item["breaker"]["state"] in ("open", "half-open") and item["breaker"]["reason"]
        assert execute(client, engine="auto").json["isolation"]["engine"] == "native"


def test_a_policy_limits_the_engines(make_daemon, tmp_path):
    tmp_path.chmod(0o755)
    policies = tmp_path / "policies"
    policies.mkdir(mode=0o755)
    (policies / "narrow.yaml").write_text("name: narrow\nextends: default\nengines: [second]\n")
    (policies / "strong.yaml").write_text("name: strong\nextends: default\nmin_isolation: gvisor\n")
    daemon = make_daemon(config=f"{TWO}policy:\n  dir: {policies}\n  selectable: [narrow, strong]\n")
    daemon.start()
    with daemon.client() as client:
        assert execute(client, policy="narrow").json["isolation"]["engine"] == "second"
        assert execute(client, policy="narrow", engine="auto").json["isolation"]["engine"] == "second"
        answer = execute(client, policy="narrow", engine="native")
        assert answer.status == 403 and "engines" in answer.json["error_detail"], answer
        answer = execute(client, policy="strong")
        assert answer.status == 503 and "min_isolation" in answer.json["error_detail"], answer
        answer = execute(client, policy="strong", engine="native")
        assert answer.status == 403, answer


def test_nothing_runs_where_the_setting_asks_for_more_than_there_is(make_daemon):
    daemon = make_daemon(config="min_isolation: gvisor\n")
    daemon.start()
    with daemon.client() as client:
        for fields in ({}, {"engine": "auto"}, {"engine": "native"}):
            answer = execute(client, **fields)
            assert answer.status in (403, 503) and "gvisor" in answer.json["error_detail"], answer


@contextlib.contextmanager
def mortal(config):
    made = Daemon(config=config)
    made.start()
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.stop()
        host.wait_until(lambda: made.engine_pid is None and made.engine_pid_of("second") is None, 90, "the engines have ended")
        made.remove()


def test_sessions_of_both_engines_outlive_a_killed_daemon():
    with mortal(TWO) as daemon:
        client = Client(daemon.socket)
        sessions = {name: Session(client, mode="persistent", language="python", engine=name) for name in ("native", "second")}
        for name, session in sessions.items():
            session.run(f"x = {name!r}")
        pids = daemon.engine_pid, daemon.engine_pid_of("second")
        daemon.kill()
        daemon.start()
        client = Client(daemon.socket)
        assert (daemon.engine_pid, daemon.engine_pid_of("second")) == pids
        for name, session in sessions.items():
            session.client = client
            result = session.run("x")
            assert result["result"] == name and result["isolation"]["engine"] == name
            session.delete()


def test_a_session_whose_engine_is_not_configured_any_more_fails_with_the_reason():
    with mortal(TWO) as daemon:
        client = Client(daemon.socket)
        session = Session(client, mode="persistent", language="python", engine="second")
        session.run("x = 1")
        daemon.kill()
        (daemon.home / "millibox.yaml").write_text("sessions:\n  survive: 60s\n")
        daemon.start()
        session.client = Client(daemon.socket)
        info = session.info()
        assert info["state"] == "failed" and "there is no engine 'second'" in info["reason"], info
