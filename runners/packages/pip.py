# SPDX-License-Identifier: Apache-2.0
"""Installs Python packages: see README.md."""

import glob
import json
import os
import platform
import re
import socket
import subprocess
import sys
import sysconfig
import urllib.parse

TARGET = "/workspace/layer/pip"
REPORT = "/workspace/report.json"
TMP = "/workspace/tmp"
LAYER_RUN = "/workspace/layer/run"
CONNECT_S = 15
# What pip says about a package that it cannot install.
BLAMES = (
    r"No matching distribution found for ([^\s(]+)",
    r"satisfies the requirement ([^\s(]+)",
    r"Failed building wheel for (\S+)",
    r"THESE PACKAGES DO NOT MATCH THE HASHES[\s\S]*?\n\s+(\S+)",
    r"requirement (?:is|'|\")?\s*(\S+?)['\"]? .*(?:conflict|invalid)",
    r"Invalid requirement: '([^']+)'",
    r"In --require-hashes mode[\s\S]*?\n\s+(\S+)",
)


def fail(what):
    print(what[:190].replace("\n", " "), flush=True)
    sys.exit(1)


def check_registry(url):
    """Fail at once if the registry cannot be reached."""
    parts = urllib.parse.urlsplit(url)
    proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.scheme == "https":
        head = f"CONNECT {parts.hostname}:{port} HTTP/1.1\r\nHost: {parts.hostname}:{port}\r\n\r\n"
    else:
        head = f"GET {url} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection((proxy.hostname, proxy.port), CONNECT_S) as sock:
            sock.sendall(head.encode())
            answer = sock.recv(4096).decode("latin-1")
    except OSError as error:
        fail(f"the registry {parts.hostname} does not answer: {error}")
    status = answer.split(" ", 2)[1:2]
    if status in (["403"], ["502"], ["503"], ["504"]) or not status:
        said = answer.partition("\r\n\r\n")[2].strip().splitlines()
        reason = said[-1] if said else (answer.splitlines() or ["no answer"])[0]
        fail(f"the registry {parts.hostname} cannot be reached: {reason}")


def blame(text, wanted):
    """The package that failed, by pip's words."""
    for pattern in BLAMES:
        if found := re.search(pattern, text):
            return found.group(1).strip("'\",;")
    return ", ".join(wanted)[:80]


def explain(text):
    """pip's last error."""
    general = "subprocess-exited-with-error", "metadata-generation-failed"
    lines = [line.strip() for line in text.splitlines() if "error:" in line.lower()]
    lines = [line for line in lines if not line.endswith(general)]
    return re.sub(r"^ERROR:\s*", "", lines[-1]) if lines else (text.strip().splitlines() or ["pip failed"])[-1]


def find_pip():
    """The command: a module, or the wheel of Debian's python3-pip-whl, which brings no compilers along. None: there is no pip."""
    wheels = sorted(glob.glob("/usr/share/python-wheels/pip-*.whl"), reverse=True)
    for command in ([sys.executable, "-m", "pip"], *([sys.executable, f"{wheel}/pip"] for wheel in wheels)):
        if subprocess.run([*command, "--version"], capture_output=True, check=False).returncode == 0:
            return command
    return None


def run_pip(pip, words):
    """Return: whether it succeeded, and what it printed."""
    env = {**os.environ, "TMPDIR": TMP, "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = [*pip, "install", "--no-input", "--no-cache-dir", "--no-compile", "--retries", "0",
               "--timeout", "30", "--progress-bar", "off", "--target", TARGET, "--report", REPORT,
               "--index-url", os.environ["MILLIBOX_REGISTRY"], *words]
    host = urllib.parse.urlsplit(os.environ["MILLIBOX_REGISTRY"])
    if host.scheme == "http":
        command += ["--trusted-host", host.netloc]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=env) as process:
        parts = []
        for line in process.stdout:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            parts.append(line)
            del parts[:-400]
    return process.returncode == 0, b"".join(parts).decode(errors="replace")


def run_script():
    """The caller's own script, which finds the packages."""
    if not os.environ["MILLIBOX_RUN"]:
        return
    os.makedirs(LAYER_RUN)
    path = ":".join(filter(None, (os.environ.get("PYTHONPATH"), TARGET)))
    env = {**os.environ, "PYTHONPATH": path, "LAYER": LAYER_RUN, "TMPDIR": TMP}
    done = subprocess.run(["/bin/sh", "-e", os.environ["MILLIBOX_RUN"]], stdin=subprocess.DEVNULL, stdout=sys.stderr,
                          env=env, check=False)
    if done.returncode:
        fail(f"run: the script ended with exit code {done.returncode}")


def compile_all():
    """Python would not use compiled files with times: a layer does not keep times of files."""
    print("Compiling", file=sys.stderr, flush=True)
    command = [sys.executable, "-I", "-m", "compileall", "-q", "-j", "0", "--invalidation-mode", "unchecked-hash",
               TARGET]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)


def lock():
    """The lock: a requirements file with hashes."""
    report = {"install": []}
    if os.path.exists(REPORT):
        with open(REPORT, encoding="utf-8") as file:
            report = json.load(file)
    lines = [f"# {platform.python_implementation()} {platform.python_version()} {sysconfig.get_platform()}"]
    for item in report["install"]:
        hashes = item.get("download_info", {}).get("archive_info", {})
        found = hashes.get("hashes") or dict([hashes["hash"].split("=", 1)] if "hash" in hashes else [])
        line = f"{item['metadata']['name']}=={item['metadata']['version']}"
        lines.append(line + "".join(f" --hash={kind}:{value}" for kind, value in sorted(found.items())))
    return "\n".join([lines[0], *sorted(lines[1:], key=str.lower)]) + "\n"


def main(wanted):
    pip = find_pip()
    if not pip:
        fail("pip is not installed in this root (on Debian: apt-get install python3-pip)")
    check_registry(os.environ["MILLIBOX_REGISTRY"])
    os.makedirs(TARGET)
    os.makedirs(TMP)
    given = os.environ["MILLIBOX_LOCK"]
    words = ["-r", given] if given else wanted
    if given and "--hash=" in open(given, encoding="utf-8").read():
        words.append("--require-hashes")
    done, text = run_pip(pip, words) if words else (True, "")
    if not done:
        fail(f"cannot install {blame(text, wanted)}: {explain(text)}")
    resolved = lock()
    run_script()
    compile_all()
    sys.stdout.write(resolved)


main(sys.argv[1:])
