# SPDX-License-Identifier: Apache-2.0
"""Packages of the real registries, warm boxes of templates with packages, and many templates at once."""

import json
import os
import pathlib
import random
import socket
import threading
import time

import pytest

from support import host
from support.daemon import Daemon
from support.registry import Registry, daemon_of, needs_pip, wheel

V1 = "/api/v1"

pytestmark = [
    pytest.mark.phases("system"),
    needs_pip,
]

SCIENCE = """
import io, numpy, pandas, sklearn, matplotlib
from sklearn.linear_model import LinearRegression
import matplotlib.pyplot as plt
x = numpy.arange(20).reshape(-1, 1)
slope = LinearRegression().fit(x, 3 * x.ravel() + 1).coef_[0]
frame = pandas.DataFrame({"a": [1, 2, 3]})
plt.plot([1, 2, 3])
places = [module.__file__ for module in (numpy, pandas, sklearn, matplotlib)]
[round(float(slope), 6), int(frame.a.sum()), all(p.startswith("/opt/millibox/packages/") for p in places)]
"""


def registry_rules(name):
    """Rules for a registry, with its address where that is not public; or a reason to skip."""
    try:
        address = socket.getaddrinfo(name, 443, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]
        socket.create_connection((address, 443), 20).close()
    except OSError as error:
        pytest.skip(f"the registry {name} does not answer: {error}")
    return [f"{address}/32"]


def test_numpy_pandas_matplotlib_and_sklearn_in_a_template():
    rules = ["pypi.org", "files.pythonhosted.org", *registry_rules("pypi.org")]
    daemon = Daemon(config=f"egress: {json.dumps({'pypi': rules})}\n", env={"MILLIBOX_PACKAGES_MANAGERS": "pip"}).start()
    try:
        with daemon.client() as client:
            client.connection.timeout = 600
            body = {"id": "science", "name": "science", "image": "host", "language": "python",
                    "lock": "numpy\npandas\nmatplotlib\nscikit-learn\n", "default_resources": {"memory": "2Gi"}}
            made = client.post(f"{V1}/templates", body)
            if made.status == 422 and "registry" in made.json["error_detail"]:
                pytest.skip(made.json["error_detail"])
            assert made.status == 201, made
            done = client.python(SCIENCE, template_id="science", timeout=60)
            assert done["result"] == [3.0, 6, True], done
            assert any("image/png" in result for result in done["results"]), done
        assert daemon.stop() == 0
    finally:
        daemon.remove()


TYPESCRIPT = """
import _ from 'lodash';
interface Named<T> { name: string; value: T }
async function later<T>(value: T): Promise<T> { return new Promise((resolve) => setTimeout(() => resolve(value), 5)); }
const all: Named<number>[] = await Promise.all([1, 2, 3].map(async (n) => ({ name: `n${n}`, value: await later(n * n) })));
console.log(_.sumBy(all, 'value'), _.map(all, (one) => one.name).join());
"""
JAVA = """
import com.google.gson.Gson;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;

public class Main {
    record Point(int x, int y) { }
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(3);
        List<Future<Integer>> futures = IntStream.range(0, 5).mapToObj(i -> pool.submit(() -> i * i)).collect(Collectors.toList());
        List<Integer> squares = new ArrayList<>();
        for (Future<Integer> future : futures) squares.add(future.get());
        pool.shutdown();
        System.out.println(new Gson().toJson(squares));
    }
}
"""
GO = """package main

import (
	"fmt"

	"github.com/google/uuid"
)

func main() {
	results := make(chan string)
	for i := 0; i < 4; i++ {
		go func(i int) { results <- uuid.NewSHA1(uuid.NameSpaceDNS, []byte{byte(i)}).String() }(i)
	}
	seen := map[string]bool{}
	for i := 0; i < 4; i++ {
		seen[<-results] = true
	}
	fmt.Println(len(seen))
}
"""
RUST = """
fn main() {
    let mut buffer = itoa::Buffer::new();
    let all: Vec<String> = (1..4).map(|i| buffer.format(i * 1_000_000_007_u64).to_string()).collect();
    println!("{}", all.join(" "));
}
"""
CSHARP = """
using System;
using Newtonsoft.Json;
class Program { static void Main() { Console.WriteLine(JsonConvert.SerializeObject(new { A = 1, B = new[] { 2, 3 } })); } }
"""
#: language: set, hosts, packages, code, output, what the root must have
REAL = {
    "typescript": ("npm", ["registry.npmjs.org"], ["lodash@4.17.21"], TYPESCRIPT, "14 n1,n2,n3\n", ["/usr/bin/npm", "/usr/bin/node"]),
    "java": ("maven", ["repo.maven.apache.org"], ["com.google.code.gson:gson:2.10.1"], JAVA, "[0,1,4,9,16]\n", ["/usr/bin/javac", "/usr/share/maven/lib"]),
    "go": ("golang", ["proxy.golang.org"], ["github.com/google/uuid@v1.3.0"], GO, "4\n", ["/usr/lib/go/bin/go"]),
    "rust": ("crates", ["index.crates.io", "static.crates.io"], ["itoa==1.0.9"], RUST, "1000000007 2000000014 3000000021\n", ["/usr/bin/rustc", "/usr/bin/cargo"]),
    "csharp": ("nuget", ["api.nuget.org"], ["Newtonsoft.Json==13.0.3"], CSHARP, '{"A":1,"B":[2,3]}\n', ["/usr/bin/mcs", "/usr/bin/mono"]),
}


@pytest.mark.parametrize("language", sorted(REAL))
def test_a_package_of_the_public_registry(language):
    name, hosts, packages, code, expected, files = REAL[language]
    missing = [file for file in files if not pathlib.Path(file).exists()]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    rules = [*hosts, *{rule for one in hosts for rule in registry_rules(one)}]
    env = {"MILLIBOX_PACKAGES_MANAGERS": "npm,cargo,go,maven,nuget"}
    daemon = Daemon(config=f"egress: {json.dumps({name: rules})}\n", env=env).start()
    try:
        with daemon.client() as client:
            client.connection.timeout = 300
            body = {"language": language, "code": code, "packages": packages, "timeout": 60}
            answer = client.post(f"{V1}/execute", body)
            assert answer.status == 200 and answer.json["stdout"] == expected, answer
        assert daemon.stop() == 0
    finally:
        daemon.remove()


WARM = """
import sys
before = "slowpkg" in sys.modules
import slowpkg, time
print(before, slowpkg.VALUE)
"""


def test_a_pooled_box_has_imported_the_modules():
    """The module takes long to import; a program in a box from the pool finds it loaded, and no zygote has it."""
    registry = Registry()
    registry.add(wheel("slowpkg", files={"slowpkg.py": "import time\ntime.sleep(0.5)\nVALUE = 7\n"}))
    env = {"MILLIBOX_POOLS_ENABLED": "true", "MILLIBOX_ZYGOTES_ENABLED": "true", "MILLIBOX_POOLS_FLOOR": "0"}
    with daemon_of(registry, env=env) as daemon, daemon.client() as client:
        made = client.post(f"{V1}/templates", {"id": "warm", "name": "warm", "image": "host", "language": "python",
                                               "packages": ["slowpkg"], "preload": ["slowpkg"]})
        assert made.status == 201, made

        def is_warm():
            done = client.python(WARM, template_id="warm")
            assert done["stdout"].endswith("7\n"), done
            return done["isolation"]["pooled"] and done["stdout"].startswith("True") and done["metrics"]["duration_ms"] < 400

        host.wait_until(is_warm, 60, "a program finds the module in a pooled box")
        for pid in daemon.zygote_pids():
            assert "slowpkg" not in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
        daemon.restless = True


@pytest.mark.alone
def test_many_templates_used_at_random():
    """Twenty templates with different packages, sixteen clients: no wrong answer; memory and disk within bounds."""
    seconds, count, clients = int(os.environ.get("MILLIBOX_TEMPLATES_SECONDS", "12")), 20, 16
    registry = Registry()
    for i in range(count):
        registry.add(wheel(f"pack{i}", files={f"pack{i}.py": f"VALUE = {i * i}\n", f"pack{i}.bin": "x" * 200_000}))
    wrong, runs = [], [0] * clients
    with daemon_of(registry, packages={"max_per_tenant": "64Mi", "max_installs": 4}) as daemon:
        with daemon.client() as client:
            for i in range(count):
                made = client.post(f"{V1}/templates", {"id": f"t{i}", "name": f"t{i}", "image": "host", "language": "python", "packages": [f"pack{i}"]})
                assert made.status == 201, made
        end = time.monotonic() + seconds

        def work(number):
            chance = random.Random(number)
            with daemon.client() as own:
                while time.monotonic() < end and not wrong:
                    i, other = chance.randrange(count), chance.randrange(count)
                    code = f"import pack{i}\ntry:\n    import pack{other}\n    found = True\nexcept ImportError:\n    found = False\n[pack{i}.VALUE, found]"
                    answer = own.post(f"{V1}/execute", {"language": "python", "code": code, "template_id": f"t{i}"})
                    if answer.status == 429:
                        continue
                    if answer.status != 200 or answer.json["result"] != [i * i, i == other]:
                        wrong.append(answer)
                    runs[number] += 1

        threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]
        assert min(runs) > 0 and sum(runs) > clients, runs
        trees = list((daemon.home / "state/roots").glob("pkg-*"))
        size = sum(path.stat().st_size for tree in trees for path in tree.rglob("*") if path.is_file())
        assert len(trees) == count and size < 64 << 20
        assert host.rss_kib(daemon.pid) < 512 << 10
