# SPDX-License-Identifier: Apache-2.0
"""What the Python SDK does when connections break, daemons restart, and many sandboxes are used at once."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import millibox
from millibox import _calls
from millibox._transport_options import Attempts

from support import crowd, host
from support.cutter import Cutter
from support.daemon import Daemon

pytestmark = pytest.mark.phases("system")

LINES = 600  # some come together from a busy host, and all cuts must come before the end
CODE = f"import time\nfor i in range({LINES}): print('line', i, flush=True); time.sleep(0.002)\n'the end'"


@pytest.fixture
def cutter(daemon, tmp_path):
    made = []

    def make(*limits):
        made.append(Cutter(daemon.socket, str(tmp_path / "sock"), limits))
        return made[0]

    yield make
    for proxy in made:
        proxy.close()


@pytest.mark.parametrize("limits", [(2500,), (2500, 700, 4000, 1500), (13000,)])
def test_a_broken_stream_loses_and_repeats_nothing(kind, daemon, cutter, tmp_path, limits):
    proxy = cutter(*limits)
    with kind.Client(socket=daemon.socket) as straight, kind.Sandbox(straight) as box:
        with kind.Client(socket=str(tmp_path / "sock")) as client, kind.attach(box.id, client) as cut:
            seen, rich = [], []
            result = cut.run_code(CODE, on_stdout=seen.append, on_result=rich.append)
    assert "".join(seen) == result.stdout == "".join(f"line {i}\n" for i in range(LINES))
    assert rich == result.results and result.text == "'the end'"
    assert proxy.cuts == len(limits)


def test_a_terminal_loses_and_repeats_nothing(kind, daemon, cutter, tmp_path):
    with kind.Client(socket=daemon.socket) as straight, kind.Sandbox(straight) as box:
        started = box.pty("stty -echo; echo ready; read go; exec seq 1 5000")
        proxy = cutter(3000, 9000)
        with kind.Client(socket=str(tmp_path / "sock")) as client:
            events = client.execution(started.id).events()
            shown = next(event.text for event in events if event.kind == "stdout")
            started.send("go\n")
            shown += "".join(event.text for event in events if event.kind == "stdout")
    assert shown == "ready\r\n" + "".join(f"{i}\r\n" for i in range(1, 5001))
    assert proxy.cuts == 2


def test_the_end_of_a_stream_is_not_repeated(kind, daemon, cutter, tmp_path):
    """Rich results have no numbers: the daemon sends them again with the end."""
    for limit in range(1200, 2400, 100):
        with kind.Client(socket=daemon.socket) as straight, kind.Sandbox(straight) as box:
            proxy = Cutter(daemon.socket, str(tmp_path / f"sock{limit}"), [limit])
            with kind.Client(socket=str(tmp_path / f"sock{limit}")) as client, kind.attach(box.id, client) as cut:
                rich = []
                cut.run_code("import sys; sys.stdout.buffer.write(b'a\\xe2\\x82'); 'x' * 300", on_result=rich.append)
            proxy.close()
            assert [sorted(bundle) for bundle in rich] == [["text/plain"]], limit


def test_an_idempotent_request_is_repeated_when_its_body_breaks(kind, daemon, cutter, tmp_path):
    data = bytes(range(256)) * 400
    with kind.Client(socket=daemon.socket) as straight, kind.Sandbox(straight) as box:
        box.files.write("data", data)
        proxy = cutter(5000, len(data))
        with kind.Client(socket=str(tmp_path / "sock")) as client, kind.attach(box.id, client) as cut:
            assert cut.files.read("data") == data
            assert proxy.cuts == 2


def test_a_broken_request_without_an_id_is_not_repeated(kind, daemon, cutter, tmp_path):
    """The daemon may run the program: the caller must decide."""
    proxy = cutter(1)
    with kind.Client(socket=str(tmp_path / "sock")) as client:
        with pytest.raises(millibox.ConnectionLost):
            client.run_code("print(1)")
    assert proxy.cuts == 1


def test_the_daemon_restarts_in_between(kind, make_daemon):
    served = make_daemon().start()
    with kind.Client(socket=served.socket) as client, kind.Sandbox(client) as box:
        box.run_code("x = 41")
        restarted = threading.Thread(target=lambda: (served.kill(), served.start()))
        seen = []

        def on_stdout(text):
            seen.append(text)
            if len(seen) == 1:
                restarted.start()

        execution = box.start_code("import time\nfor i in range(40): print(i, flush=True); time.sleep(0.02)\nx + 1")
        result = execution.wait(on_stdout=on_stdout)
        restarted.join()
        assert "".join(seen) == result.stdout == "".join(f"{i}\n" for i in range(40))
        assert result.json == 42 and box.run_code("x").json == 41
        served.kill()
        served.start()
        assert box.run_code("x + 2").json == 43
        assert client.run_code("print(1)").ok


def test_a_killed_daemon_may_lose_what_was_not_started_with_a_handle(kind, make_daemon):
    """The daemon writes such a program down only later: either all of its output comes, or the caller reads what to do."""
    served, seen = make_daemon().start(), []

    def on_stdout(text):
        seen.append(text)
        if len(seen) == 1:
            served.kill()
            served.start()

    with kind.Client(socket=served.socket) as client, kind.Sandbox(client) as box:
        try:
            result = box.run_code("import time\nfor i in range(9): print(i, flush=True); time.sleep(0.1)", on_stdout=on_stdout)
            assert "".join(seen) == result.stdout == "".join(f"{i}\n" for i in range(9))
        except millibox.ConnectionLost as e:
            assert "start_code" in str(e)
        assert box.run_code("print(2)").stdout == "2\n"


@pytest.mark.alone
def test_a_hundred_sandboxes_at_once(daemon):
    async def one(client, number):
        async with millibox.AsyncSandbox(client, memory="64Mi") as box:
            await box.run_code(f"x = {number}")
            await box.files.write("n", str(number))
            return (await box.run_code("x, open('n').read()")).text

    async def all_of_them():
        async with millibox.AsyncClient(socket=daemon.socket) as client:
            return await asyncio.gather(*(one(client, number) for number in range(100)))

    assert asyncio.run(all_of_them()) == [f"({number}, '{number}')" for number in range(100)]
    daemon.settle()


@pytest.mark.alone
def test_a_hundred_threads_share_a_client(daemon):
    answers = [None] * 100
    with millibox.Client(socket=daemon.socket) as client:
        def one(number):
            with millibox.Sandbox(client, memory="64Mi") as box:
                answers[number] = box.run_code(f"{number} + 1").json

        threads = [threading.Thread(target=one, args=(number,)) for number in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == list(range(1, 101))
    daemon.settle()


@pytest.mark.alone
@pytest.mark.slow
def test_a_file_of_a_gigabyte(make_daemon, tmp_path):
    """Files of a box are kept in memory, and each copy in /workspace counts."""
    free = host.available_memory()
    if free < 6 << 30:
        pytest.skip(f"the host has {free >> 20} MiB of free memory, and 6144 are needed")
    served = make_daemon().start()
    large, back = tmp_path / "large", tmp_path / "back"
    piece = bytes(range(256)) * 4096
    with open(large, "wb") as file:
        for _ in range(1024):
            file.write(piece)
    with millibox.Client(socket=served.socket) as client, millibox.Sandbox(client, memory="3Gi", disk="1200Mi") as box:
        box.upload(large)
        assert box.files.stat("large").size == 1 << 30
        box.download("large", back)
    with open(back, "rb") as file:
        assert all(file.read(1 << 20) == piece for _ in range(1024)) and not file.read(1)


CROWD = 60


@pytest.fixture(scope="module")
def crowded():
    served = Daemon(config=crowd.CROWDED, tcp=True).start()
    yield served
    served.stop()
    served.remove()


def addresses_of(served):
    return [{"socket": served.socket}, {"url": "http://%s:%d" % served.tcp_address()}]


@pytest.mark.parametrize("way", [0, 1], ids=["unix", "tcp"])
@pytest.mark.parametrize("streams", [False, True], ids=["calls", "streams"])
def test_nothing_is_lost_in_a_crowd(crowded, way, streams):
    """Whatever is refused was not begun, and is sent again: the daemon runs each program once."""
    address = addresses_of(crowded)[way]
    callbacks = {"on_stdout": lambda text: None} if streams else {}

    def run(client, number):
        return client.run_code(f"print({number} * 3)", **callbacks)

    async def gather():
        async with millibox.AsyncClient(**address) as client:
            return await asyncio.gather(*(run(client, i) for i in range(CROWD)))

    assert [result.stdout for result in asyncio.run(gather())] == [f"{i * 3}\n" for i in range(CROWD)]
    with millibox.Client(**address) as client, ThreadPoolExecutor(CROWD) as pool:
        results = list(pool.map(lambda i: run(client, i), range(CROWD)))
    assert [result.stdout for result in results] == [f"{i * 3}\n" for i in range(CROWD)]


def test_without_patience_a_crowd_is_refused(crowded):
    """The control: without it some are refused, with an error that says that nothing was begun."""
    with millibox.Client(socket=crowded.socket, busy_timeout=0, connections=CROWD) as client, ThreadPoolExecutor(CROWD) as pool:
        waiting = [pool.submit(client.run_code, "print(1)") for _ in range(CROWD)]
        errors = [call.exception() for call in waiting]
    refused = [error for error in errors if error is not None]
    assert refused and all(error.should_retry and error.status == 429 and error.retry_after for error in refused)


@pytest.mark.parametrize("seconds", [0, -5, 0.001])
def test_a_hostile_answer_causes_no_busy_loop(seconds):
    """Only the wait bounds how often a request is sent again."""
    refusal = millibox.errors.from_answer(429, {"error_code": "Sandbox.TooManyRequests", "retry_after": seconds})
    attempts = Attempts(_calls.show("/"), retries=0, busy_timeout=60)
    assert refusal.should_retry and attempts.pause(refusal) >= 0.1
    # Control: a wait that is named is obeyed.
    assert attempts.pause(millibox.errors.from_answer(429, {"retry_after": 3})) >= 3
