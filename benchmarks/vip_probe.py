"""What the two children of keepalived cost: the start of the track script, and the FIFO's reader at 1,000 transitions a second.

``script/bench`` runs it with the others; ``python benchmarks/vip_probe.py`` alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

EDGEKEEPER = str(Path(sys.executable).with_name("edgekeeper"))
Row = tuple[str, str, str, bool]


def cold_start(times: int = 30) -> list[Row]:
    """One good look at a DNS server that answers at once, against an interpreter that imports socket and ssl; side by side."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        threading.Thread(target=_answer, args=(server,), daemon=True).start()
        peer = [sys.executable, "-I", "-c", "import socket, ssl"]
        ours = [EDGEKEEPER, "vip", "probe", "--vip", "dns", "--dns", f"127.0.0.1:{server.getsockname()[1]}", "--qname", "health.example."]
        took: dict[int, list[float]] = {0: [], 1: []}
        for _ in range(times + 2):
            for index, argv in enumerate((peer, ours)):
                begun = time.perf_counter()
                subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
                took[index].append(time.perf_counter() - begun)
    bare, own = (statistics.median(took[index][2:]) for index in (0, 1))
    measured = f"{own / bare:.2f} x `python3 -I -c 'import socket, ssl'` ({own * 1000:.0f} ms, {bare * 1000:.0f} ms)"
    return [("vip probe, cold, with its look", measured, "under 4 x", own < 4 * bare)]


def _answer(server: socket.socket) -> None:
    with contextlib.suppress(OSError):  # closed: it is over
        while True:
            asked, who = server.recvfrom(4096)
            server.sendto(asked[:2] + b"\x81\x80" + asked[4:], who)


def fifo(seconds: float = 5.0, rate: int = 1000) -> list[Row]:
    """Memory and processor of the reader, and how long its file is wrong, at 1,000 transitions a second over 20 VIPs."""
    with tempfile.TemporaryDirectory() as folder:
        path, file = Path(folder) / "vrrp.fifo", Path(folder) / "vip-state.json"
        os.mkfifo(path)
        hand = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        child = subprocess.Popen([EDGEKEEPER, "vip", "fifo", "--node", "edge-a", str(path)], stderr=subprocess.DEVNULL)
        os.write(hand, b'INSTANCE "VI_last" MASTER 1\n')
        while not file.exists():
            time.sleep(0.01)
        before, begun, sent, worst = _cpu(child.pid), time.monotonic(), 0, 0.0
        mark, marked = b"", 0.0
        while (now := time.monotonic()) - begun < seconds:
            while sent < (now - begun) * rate:
                sent += 1
                os.write(hand, b'INSTANCE "VI_v%d" %s %d\n' % (sent % 20, (b"MASTER", b"BACKUP", b"FAULT")[sent % 3], sent % 255))
            if not mark or mark in file.read_bytes():
                worst = max(worst, now - marked if mark else 0.0)
                mark, marked = b'"last":{"state":"MASTER","priority":%d,' % (sent % 250 + 1), time.monotonic()
                os.write(hand, b'INSTANCE "VI_last" MASTER %d\n' % (sent % 250 + 1))
            time.sleep(0.001)
        share = 100 * (_cpu(child.pid) - before) / (time.monotonic() - begun)
        memory = int(next(line for line in Path(f"/proc/{child.pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1]) / 1024
        child.kill()
        child.wait()
        os.close(hand)
    what = f"vip fifo at {sent / seconds:.0f} transitions/s"
    return [
        (f"{what}, memory", f"{memory:.1f} MiB resident", "under 25 MiB", memory < 25),
        (f"{what}, CPU", f"{share:.1f} % of a core", "under 10 %", share < 10),
        (f"{what}, the state file is wrong for", f"{worst * 1000:.0f} ms at most", "under 100 ms", worst < 0.1),
    ]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rows() -> list[Row]:
    """All of them."""
    return cold_start() + fifo()


if __name__ == "__main__":
    found = rows()
    sys.stdout.writelines(f"| {what} | {measured} | {limit} | {'reached' if well else '**not reached**'} |\n" for what, measured, limit, well in found)
    sys.exit(0 if all(well for *_, well in found) else 1)
