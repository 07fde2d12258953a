# SPDX-License-Identifier: Apache-2.0
import pytest
from support.probes import Probe


@pytest.fixture(scope="session")
def syscalls(tmp_path_factory):
    directory = tmp_path_factory.mktemp("probes")
    directory.chmod(0o755)
    return Probe("syscalls", directory)


@pytest.fixture(scope="session")
def agentside(tmp_path_factory):
    directory = tmp_path_factory.mktemp("probes")
    directory.chmod(0o755)
    return Probe("agentside", directory)
