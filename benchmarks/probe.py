"""What asking costs: 200 targets, four questions a second each, by DNS, ICMP, TCP and HTTPS; beside fping and the blackbox exporter in the same run.

``script/bench`` runs it with the others; ``python benchmarks/probe.py [dns|icmp|tcp|https] [SECONDS]`` alone. Peers that are not installed
are left out (fping, prometheus-blackbox-exporter); nginx is what is asked by TCP and HTTPS.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from edgekeeper.lab.certs import Authority

EDGEKEEPER = str(Path(sys.executable).with_name("edgekeeper"))
TARGETS, EVERY_S = 200, 0.25
LIMITS = {"dns": 20.0, "icmp": 20.0, "tcp": 30.0, "https": 100.0}
"""Percent of a core. A fresh TLS handshake is what it costs in OpenSSL: a millisecond and more, which the plan prints."""
MODULES = """modules:
  dns: {prober: dns, timeout: 1s, dns: {query_name: health.example, query_type: A, preferred_ip_protocol: ip4}}
  icmp: {prober: icmp, timeout: 1s, icmp: {preferred_ip_protocol: ip4}}
  tcp: {prober: tcp, timeout: 1s, tcp: {preferred_ip_protocol: ip4}}
  https: {prober: http, timeout: 1s, http: {preferred_ip_protocol: ip4, tls_config: {insecure_skip_verify: true}}}
"""
Row = tuple[str, str, str, bool]


def cpu_s(pid: int) -> float:
    """Seconds of processor of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> float:
    """MiB that are resident."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024


def free_port() -> int:
    """A port of TCP that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextlib.contextmanager
def nameserver() -> Iterator[int]:
    """A process that answers every question by DNS with nothing; its port."""
    code = (
        "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.bind(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\n"
        "while True:\n d, w = s.recvfrom(4096)\n s.sendto(d[:2] + b'\\x81\\x80' + d[4:], w)\n"
    )
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


@contextlib.contextmanager
def web(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """An nginx of one worker; its ports for plain and for TLS, and its authority's certificate."""
    authority = Authority(folder)
    leaf = authority.issue()
    plain, secure = free_port(), free_port()
    (folder / "nginx.conf").write_text(
        f"worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\nevents {{ worker_connections 4096; }}\n"
        f"http {{ access_log off; server {{ listen 0.0.0.0:{plain} backlog=4096; listen 0.0.0.0:{secure} ssl backlog=4096;\n"
        f"ssl_certificate {leaf}/tls.crt; ssl_certificate_key {leaf}/tls.key; location / {{ return 200 'ok'; }} }} }}\n"
    )
    with subprocess.Popen(["nginx", "-c", str(folder / "nginx.conf"), "-p", str(folder), "-e", str(folder / "error.log")]) as server:  # noqa: S607 - the one on PATH
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", secure), 0.2):
                break
            time.sleep(0.05)
        try:
            yield plain, secure, authority.ca_file
        finally:
            server.send_signal(signal.SIGTERM)


def targets(kind: str, port: int) -> list[str]:
    """What edgekeeper is told to ask."""
    hosts = [f"127.0.1.{i + 1}" for i in range(TARGETS)]
    return {
        "dns": [f"dns://127.0.0.1:{port}/n{i}.example" for i in range(TARGETS)],
        "icmp": [f"icmp://{host}" for host in hosts],
        "tcp": [f"tcp://{host}:{port}" for host in hosts],
        "https": [f"https://{host}:{port}/#sni=dns.example" for host in hosts],
    }[kind]


def ours(kind: str, port: int, seconds: float, folder: Path, ca: Path) -> tuple[float, float, float, float, float]:
    """Percent of a core, questions a second, MiB, lateness p99 in ms, share that was unanswered."""
    config = folder / "probe.yaml"
    config.write_text(json.dumps({"node": "edge-a", "state_dir": str(folder / "state"), "probe": {"targets": targets(kind, port), "every": f"{EVERY_S}s"}}))
    argv = [EDGEKEEPER, "--config", str(config), "probe", "-o", "json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "SSL_CERT_FILE": str(ca)}) as process:
        time.sleep(3.0)
        begun, before = time.monotonic(), cpu_s(process.pid)
        time.sleep(seconds)
        share = (cpu_s(process.pid) - before) / (time.monotonic() - begun) * 100
        memory = memory_mib(process.pid)
        process.send_signal(signal.SIGTERM)
        said = json.loads(process.communicate(timeout=30)[0])
    asked, lost = (sum(one[what] for one in said["targets"]) for what in ("asked", "unanswered"))
    meter = said["meter"]
    return share, TARGETS / EVERY_S * asked / (asked + meter["void"] + meter["missed"]), memory, meter["late_p99_ms"], lost / asked


def fping(seconds: float) -> float:
    """Percent of a core that fping takes for the same."""
    with subprocess.Popen(
        ["fping", "-q", "-l", "-p", str(int(EVERY_S * 1000)), "-i", "1", *(url.removeprefix("icmp://") for url in targets("icmp", 0))],  # noqa: S607 - the one on PATH
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(1.0)
        begun, before = time.monotonic(), cpu_s(process.pid)
        time.sleep(seconds)
        share = (cpu_s(process.pid) - before) / (time.monotonic() - begun) * 100
        process.terminate()
    return share


def blackbox(kind: str, port: int, seconds: float, folder: Path) -> tuple[float, float]:
    """Percent of a core that the exporter takes, and how many questions a second it was given (kept connections, as a scraper has them)."""
    (folder / "blackbox.yml").write_text(MODULES)
    at = free_port()
    argv = ["prometheus-blackbox-exporter", f"--config.file={folder}/blackbox.yml", f"--web.listen-address=127.0.0.1:{at}", "--log.level=error"]
    done, over = [0], threading.Event()
    asked = [(f"127.0.0.1:{port}" if kind == "dns" else url.partition("://")[2] if kind != "https" else url.partition("#")[0]) for url in targets(kind, port)]

    def scrape(mine: list[str]) -> None:
        line = http.client.HTTPConnection("127.0.0.1", at, timeout=10)
        number, begun = 0, time.monotonic()
        while not over.is_set():
            due = begun + number * EVERY_S / len(mine)
            time.sleep(max(0.0, due - time.monotonic()))
            line.request("GET", f"/probe?module={kind}&target={quote(mine[number % len(mine)], safe='')}")
            line.getresponse().read()
            number += 1
            done[0] += 1

    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        time.sleep(1.5)
        threads = [threading.Thread(target=scrape, args=(asked[part::4],), daemon=True) for part in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        begun, before, were = time.monotonic(), cpu_s(process.pid), done[0]
        time.sleep(seconds)
        wall = time.monotonic() - begun
        share, rate = (cpu_s(process.pid) - before) / wall * 100, (done[0] - were) / wall
        over.set()
        for thread in threads:
            thread.join(10)
        process.terminate()
    return share, rate


def one(kind: str, seconds: float) -> list[Row]:
    """One kind: ours, then the peers."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        port, ca = 0, Path("/dev/null")
        if kind == "dns":
            port = stack.enter_context(nameserver())
        elif kind in {"tcp", "https"}:
            plain, secure, ca = stack.enter_context(web(folder))
            port = plain if kind == "tcp" else secure
        share, rate, memory, late, lost = ours(kind, port, seconds, folder, ca)
        peers = []
        if shutil.which("prometheus-blackbox-exporter"):
            theirs, given = blackbox(kind, port, seconds, folder)
            a_question = theirs / given * 10
            peers.append(f"blackbox exporter {theirs:.0f} % for {given:.0f} a second ({a_question:.2f} ms each): {share / rate * 10 / a_question:.2f} x")
        if kind == "icmp" and shutil.which("fping"):
            peers.append(f"fping {fping(seconds):.1f} %")
    what = f"probe, {TARGETS} {kind} targets each {EVERY_S * 1000:.0f} ms, fresh"
    measured = f"{share:.1f} % of a core ({share / rate * 10:.2f} ms a question), {memory:.0f} MiB, {rate:.0f} a second, {lost:.2%} unanswered" + "".join(
        f"; {peer}" for peer in peers
    )
    return [
        (f"{what}, CPU", measured, f"under {LIMITS[kind]:g} %", share < LIMITS[kind] and lost < 0.001 and rate > 0.99 * TARGETS / EVERY_S),
        (f"{what}, lateness of a question, p99", f"{late:.1f} ms", "under 20 ms", late < 20),
    ]


def rows(kinds: tuple[str, ...] = ("dns", "icmp", "tcp", "https"), seconds: float = 10.0) -> list[Row]:
    """All of it, each beside its limit."""
    return [row for kind in kinds for row in one(kind, seconds)]


if __name__ == "__main__":
    words = sys.argv[1:]
    time_s = float(words.pop()) if words and words[-1].replace(".", "").isdigit() else 10.0
    found = rows(tuple(words) or ("dns", "icmp", "tcp", "https"), time_s)
    for row in found:
        print(" | ".join(map(str, row)))
    sys.exit(0 if all(good for *_, good in found) else 1)
