# SPDX-License-Identifier: Apache-2.0
"""Packages with the Python SDK: of single executions, of new sandboxes and of running ones. With them, what else a box is made of."""


import pytest

from millibox import errors

from support.registry import Registry, daemon_of, needs_pip, wheel

pytestmark = [
    pytest.mark.phases("system"),
    needs_pip,
]


@pytest.fixture(scope="module")
def registry():
    made = Registry()
    made.add(wheel("tinypkg"))
    made.add(wheel("needy", requires=["tinypkg<2"]))
    yield made
    made.close()


@pytest.fixture(scope="module")
def daemon(registry):
    with daemon_of(registry) as made:
        yield made


USE = "import tinypkg; tinypkg.VALUE"


def test_an_execution_with_packages(sdk):
    shown = []
    assert sdk.run_code(USE, packages=["tinypkg==1.0"], on_install=shown.append).json == "1.0"
    assert sdk.run_code(USE, packages="tinypkg").json == "1.0"  # one name is a list of one
    assert [event.kind for event in sdk.stream("import needy; needy.VALUE", packages=["needy"])][-2:] == ["result", "end"]
    handler = "def handler(event):\n    import tinypkg\n    return tinypkg.VALUE + event['x']"
    assert sdk.call(handler, {"x": "!"}, packages=["tinypkg==1.0"]) == "1.0!"


def test_progress_of_an_installation(sdk, registry, kind):
    name = f"watched{kind.is_async:d}"
    registry.add(wheel(name))
    shown = []
    assert sdk.run_code(f"import {name}; 7", packages=[name], on_install=shown.append).json == 7
    assert f"Successfully installed {name}" in "".join(shown)
    with pytest.raises(errors.InstallFailedError) as caught:
        sdk.run_code("1", packages=["no-such-package"], on_install=shown.append)
    assert "no-such-package" in str(caught.value) and "no-such-package" in caught.value.log


def test_a_lock(kind, sdk):
    with kind.Sandbox(sdk) as box:
        lock = box.install("needy==1.0")["lock"]
    code = "import needy, tinypkg; needy.VALUE + tinypkg.VALUE"
    assert sdk.run_code(code, lock=lock).json == "1.01.0"
    with kind.Sandbox(sdk, lock=lock) as box:
        assert box.run_code(code).json == "1.01.0"
    with pytest.raises(errors.InvalidParameterError):
        sdk.run_code("1", packages=["tinypkg"], lock=lock)


def test_a_sandbox_with_packages(kind, sdk):
    with kind.Sandbox(sdk, packages=["tinypkg==1.0"]) as box:
        assert box.run_code(USE).json == "1.0"
    with pytest.raises(errors.InstallFailedError, match="no-such-package"):
        with kind.Sandbox(sdk, packages=["no-such-package"]):
            pass


def test_packages_for_a_running_sandbox(box):
    assert box.run_code(f"x = 41; {USE}").error.name == "ModuleNotFoundError"
    shown = []
    done = box.install("tinypkg==1.0", "needy", on_output=shown.append)
    assert (done["manager"], done["packages"]) == ("pip", ["tinypkg==1.0", "needy"]) and "tinypkg==1.0" in done["lock"]
    assert "Successfully installed" in "".join(shown)
    assert box.run_code(f"{USE} + str(x)").json == "1.041"
    assert box.install("pip")["lock"] is None
    with pytest.raises(errors.InstallFailedError) as caught:
        box.install("no-such-package")
    assert "no-such-package" in caught.value.log
    with pytest.raises(errors.InvalidParameterError) as caught:
        box.install("x", language="lua")
    assert caught.value.field == "language"


def test_tools_of_servers(kind, sdk):
    """The policy decides on each; there is no server here."""
    with pytest.raises(errors.ApiError, match="absent"):
        sdk.run_code("1", mcp=["absent/tool"])
    with pytest.raises(errors.ApiError, match="absent"):
        with kind.Sandbox(sdk, mcp=["absent/tool"]):
            pass


def test_hosts(kind, make_daemon):
    """The policy lets requests name hosts; only those are reached."""
    code = "import urllib.request as u\ntry: u.urlopen('http://other.example.com/')\nexcept OSError as e: print(e)"
    served = make_daemon(env={"MILLIBOX_POLICY_DEFAULT": "owner"}).start()
    with kind.Client(socket=served.socket) as client:
        result = client.run_code(code, allow="api.example.com")
        assert [denial["what"] for denial in result.denials] == ["other.example.com:80"], result.raw
        with kind.Sandbox(client, allow=["api.example.com"]) as box:
            assert box.info().raw["network_allow"] == ["api.example.com"]
            assert box.run_code(code).denials[0]["what"] == "other.example.com:80"
        with kind.Sandbox(client, allow=[]) as box:
            assert box.run_code(code).denials[0]["what"] == "other.example.com:80"


def test_hosts_that_no_policy_lets_requests_name(sdk):
    with pytest.raises(errors.PolicyDeniedError, match="network.request") as refused:
        sdk.run_code("1", allow=["api.example.com"])
    assert refused.value.field == "network_allow"
    assert sdk.run_code("print(1)", allow=[]).stdout == "1\n"


def test_receipts(sdk, box):
    for ran in (sdk, box):
        assert ran.run_code("1").receipt is None
        signed = ran.run_code("2", receipt="signed")
        assert signed.receipt["payload"] and signed.json == 2, signed.raw
