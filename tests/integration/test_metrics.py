# SPDX-License-Identifier: Apache-2.0
"""Metrics count exactly what happened."""

import re
import shutil
import subprocess

import pytest
import yaml
from support import host, metrics
from support.daemon import ROOT
from support.sessions import V1, Session

pytestmark = pytest.mark.phases("system", "user")


class Change:
    """How much the samples have grown since."""

    def __init__(self, client):
        self.client = client
        self.before = metrics.read(client)

    def of(self, name, **labels):
        return metrics.read(self.client).total(name, **labels) - self.before.total(name, **labels)


@pytest.mark.smoke
def test_executions_without_a_session_are_counted_by_language_and_end(client):
    change = Change(client)
    client.python("print(1)")
    client.python("raise SystemExit(3)")
    client.shell("sleep 9", timeout=0.2)
    assert change.of("sandbox_executions_total", language="python", status="success") == 1
    assert change.of("sandbox_executions_total", language="python", status="failed") == 1
    assert change.of("sandbox_executions_total", language="shell", status="timeout") == 1
    assert change.of("sandbox_executions_total") == 3
    assert change.of("sandbox_limits_total", limit="time") == 1
    for name in ("execution_queue_seconds", "startup_duration_seconds", "execution_total_seconds", "cold_start_duration"):
        assert change.of(f"sandbox_{name}_count") == 3, name
        assert change.of(f"sandbox_{name}_bucket", le="+Inf") == 3, name
    assert change.of("sandbox_execution_duration_seconds_count", language="shell") == 1
    assert 0.2 <= change.of("sandbox_execution_duration_seconds_sum", language="shell") < 2 * host.PATIENCE
    assert change.of("sandbox_execution_output_bytes_total", stream="stdout") == 2
    assert change.of("sandbox_sessions_total") == 0


@pytest.mark.parametrize("mode", ["ephemeral", "persistent"])
def test_executions_of_sessions_are_counted_once(client, mode):
    host.wait_until(lambda: metrics.read(client).total("sandbox_containers") == 0, 10, "boxes of earlier tests gone")
    change = Change(client)
    session = Session(client, mode=mode)
    session.run("print(1)")
    first = session.start("import time; time.sleep(30)")
    second = session.start("print(2)")
    host.wait_until(lambda: client.get(f"{V1}/executions/{first}").json["status"] == "running")
    assert change.of("sandbox_sessions_active") == 1
    assert change.of("sandbox_executions_running") == 1
    # It counts boxes being torn down, as that of the first run may be.
    host.wait_until(lambda: change.of("sandbox_containers") == 1, 10, "one box")
    session.delete()
    assert client.get(f"{V1}/executions/{second}").status == 404
    assert change.of("sandbox_executions_total", status="success") == 1
    assert change.of("sandbox_executions_total", status="cancelled") == 2
    assert change.of("sandbox_executions_total") == 3
    assert change.of("sandbox_sessions_total", mode=mode) == 1
    assert change.of("sandbox_session_ends_total", state="terminated") == 1
    assert change.of("sandbox_sessions_active") == 0


def test_a_disconnect_counts_as_cancelled(daemon, client):
    change = Change(client)
    with daemon.client() as other:
        events = other.stream("shell", "sleep 30")
        next(events)
    host.wait_until(lambda: change.of("sandbox_executions_total", status="cancelled") == 1)
    host.wait_until(lambda: change.of("http_requests_total", route=f"{V1}/execute", status="2xx") == 1)


def test_requests_are_counted_by_pattern_and_never_by_id(client):
    change = Change(client)
    for i in range(20):
        assert client.get(f"{V1}/sessions/nobody{i}").status == 404
    assert client.get("/nowhere/at/all").status == 404
    assert client.request("BREW", "/healthz").status == 405
    assert client.post(f"{V1}/execute", {"code": 1, "language": "python"}).status == 400
    now = metrics.read(client)
    assert change.of("http_requests_total", route=f"{V1}/sessions/{{id}}", method="GET", status="4xx") == 20
    assert change.of("http_requests_total", route="none", method="GET", status="4xx") == 1
    assert change.of("http_requests_total", route="none", method="other", status="4xx") == 1
    assert change.of("http_request_duration_seconds_count", route=f"{V1}/sessions/{{id}}") == 20
    assert change.of("sandbox_rejected_total", reason="Sandbox.SessionNotFound") == 20
    assert change.of("sandbox_rejected_total", reason="Sandbox.InvalidParameter") == 1
    assert change.of("application_errors_total") == 0
    assert not [v for v in now.label_values("http_requests_total", "route") if "nobody" in v]
    assert now.label_values("http_requests_total", "method") <= {"GET", "POST", "DELETE", "other"}


def test_histograms_are_cumulative(client):
    client.python("pass")
    now = metrics.read(client)
    for name, kind in now.types.items():
        if kind != "histogram":
            continue
        series = {}
        for (sample, labels), value in now.samples.items():
            if sample == f"{name}_bucket":
                rest = frozenset(label for label in labels if label[0] != "le")
                le = dict(labels)["le"]
                series.setdefault(rest, []).append((float("inf") if le == "+Inf" else float(le), value))
        for rest, points in series.items():
            counts = [count for _, count in sorted(points)]
            assert counts == sorted(counts), name
            assert counts[-1] == now.value(f"{name}_count", **dict(rest)), name


def test_the_daemon_reports_its_own_usage(daemon, client):
    now = metrics.read(client)
    assert abs(now.value("process_resident_memory_bytes") / 1024 - host.rss_kib(daemon.pid)) < 4096
    assert now.value("process_open_fds") > 5
    assert now.value("active_connections") >= 1
    assert now.total("millibox_build_info") == 1
    assert now.value("process_cpu_seconds_total") > 0
    host.wait_until(lambda: metrics.read(client).value("sandbox_loop_lag_seconds_count") >= 1)


def test_json_is_the_older_servers_summary(client):
    answer = client.get("/metrics", headers={"Accept": "application/json"})
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    first = answer.json
    assert set(first) == {
        "requests_total", "average_duration_us", "active_connections", "websocket_connections", "errors_total",
        "bytes_served", "compression_ratio", "timestamp",
    }
    second = client.get("/metrics", headers={"Accept": "application/json"}).json
    assert second["requests_total"] == first["requests_total"] + 1
    assert second["bytes_served"] == first["bytes_served"] + len(answer.body)


def test_the_documentation_has_every_metric_and_no_others(client):
    text = (ROOT / "docs" / "operations.md").read_text()
    documented = set(re.findall(r"^\| `([a-z_]+)(?: \{[a-z,]+\})?` \| (?:counter|gauge|histogram) \|", text, re.M))
    assert documented == set(metrics.read(client).types)


def test_only_counters_are_named_as_counters(client):
    """Of Prometheus' conventions the one that programs rely on: rate() of what ends in _total."""
    text = client.get("/metrics").body.decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    assert len(kinds) > 50
    odd = [name for name, kind in kinds.items() if name.endswith("_total") != (kind == "counter")]
    assert odd == []


PROMETHEUS = ROOT / "deploy/prometheus"
#: Who runs the daemon changes nothing of the sample.
once = pytest.mark.phases("system")


def names_in(expression):
    """Metrics of an expression: words before their labels, a range or an operator; no functions, labels or keywords."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|without \([^)]*\)", "", expression)
    return set(re.findall(r"\b([a-z][a-z_]+)\b(?!\s*\()", bare)) - {"without"}


@once
def test_alerts_name_metrics_that_exist_and_are_documented(client):
    (group,) = yaml.safe_load((PROMETHEUS / "millibox.rules.yml").read_text())["groups"]
    known = set(re.findall(r"^# TYPE (\S+) ", client.get("/metrics").body.decode(), re.M)) | {"up"}
    guide = (ROOT / "docs/operations.md").read_text()
    assert len(group["rules"]) > 10
    for rule in group["rules"]:
        names = {re.sub("_bucket$", "", name) for name in names_in(rule["expr"])}
        assert names and names <= known, (rule["alert"], names - known)
        assert all(name in guide for name in names), rule["alert"]
        labels = {label for label in re.findall(r'(\w+)="', rule["expr"])}
        assert "job" in labels and rule["labels"]["severity"] in ("critical", "warning") and rule["annotations"]["summary"]
    assert names_in("rate(nothing_here{a=\"b\"}[5m]) > 0") == {"nothing_here"}, "control"


@once
def test_the_sample_scrapes_with_a_key_over_tls():
    sample = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    (job,) = sample["scrape_configs"]
    assert job["job_name"] == "millibox" and job["scheme"] == "https" and job["static_configs"][0]["targets"]
    assert all((PROMETHEUS / name).exists() for name in sample["rule_files"])


PROMTOOL = shutil.which("promtool") or str(ROOT / ".cache/prometheus/promtool")


@once
@pytest.mark.skipif(not shutil.which(PROMTOOL), reason="promtool is not installed: tools/setup test")
def test_promtool_accepts_the_sample_and_what_the_daemon_serves(client, tmp_path):
    for name in ("prometheus.yml", "millibox.rules.yml"):
        shutil.copy(PROMETHEUS / name, tmp_path)
    config = tmp_path / "prometheus.yml"
    config.write_text(config.read_text().replace("/etc/prometheus/", f"{tmp_path}/"))
    (tmp_path / "millibox.key").write_text("key")
    (tmp_path / "millibox-ca.pem").write_text("")
    checks = [(("check", "rules", "millibox.rules.yml"), b""), (("check", "config", "--syntax-only", "prometheus.yml"), b""),
              (("check", "metrics"), client.get("/metrics").body)]
    for words, given in checks:
        done = subprocess.run([PROMTOOL, *words], cwd=tmp_path, input=given, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    control = subprocess.run([PROMTOOL, "check", "metrics"], input=b"# HELP a_total A.\n# TYPE a_total gauge\na_total 1\n",
                             capture_output=True, timeout=60, check=False)
    assert control.returncode != 0
