"""What following a log costs: from a written line to a decision, 20,000 lines a second, 2 million lines replayed; each beside grep.

``script/bench`` runs it with the others; ``python benchmarks/watch.py`` alone. ``python benchmarks/watch.py follow file PATH`` is the
follower that is measured: the product's own source, fingerprints and decision, without what comes after a decision.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

EDGEKEEPER = str(Path(sys.executable).with_name("edgekeeper"))
SIGN = "couldn't fetch peer state"
END = "the benchmark ends here"
GREP = ["grep", "--line-buffered", "-F", SIGN]
Row = tuple[str, str, str, bool]


def fingerprints(count: int) -> list[str]:
    """As many texts; nearly all are never found, as in life."""
    return [END, SIGN, *(f"processing mapping batch {index} exceeded" for index in range(count - 2))]


def follow(kind: str, words: list[str], count: int) -> None:
    """Follow a log, decide at each sign, and print one line for it: how many lines there were so far."""
    from edgekeeper.host.clock import SystemClock  # noqa: PLC0415 - the rest of this file needs none of it
    from edgekeeper.watch.decide import Ask, Hit, Policy, begin, decide  # noqa: PLC0415
    from edgekeeper.watch.fingerprint import Fingerprint, Matcher  # noqa: PLC0415
    from edgekeeper.watch.seams import Sight, Source  # noqa: PLC0415

    matcher = Matcher([Fingerprint(text=text, level="warning") for text in fingerprints(count)], [" path=", " host="])
    clock, policy, lines = SystemClock(), Policy(), 0
    quiet = begin(clock.monotonic(), policy)

    def arrived(chunk: bytes, at: float) -> None:
        nonlocal lines
        lines += chunk.count(b"\n")
        for match in matcher.hits(chunk):
            decided = decide(quiet, Hit(match.line, match.rest), at, policy)
            assert isinstance(decided.do, Ask)
            os.write(1, b"%d %s\n" % (lines, match.name.encode()))

    def state(sight: Sight) -> None:
        if sight.seeing:
            os.write(2, b"sees\n")

    source: Source
    if kind == "file":
        from edgekeeper.watch.sources.file import FileSource  # noqa: PLC0415

        source = FileSource(words[0], clock)
    else:
        from edgekeeper.watch.sources.command import CommandSource  # noqa: PLC0415

        source = CommandSource(words, clock)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(source.follow(arrived, state))


class Process:
    """A process whose answers are read, and what it and its children have used."""

    def __init__(self, argv: list[str], *, told: bool = False) -> None:
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE if told else subprocess.DEVNULL, bufsize=0, start_new_session=True)
        if told:
            assert self.process.stderr is not None
            assert self.process.stderr.readline() == b"sees\n"

    def answer(self) -> bytes:
        """The next line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def cpu_s(self) -> float:
        """Seconds of processor, of it alone."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mib(self) -> float:
        """MiB that are resident."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def end(self) -> None:
        """Stop it."""
        self.process.terminate()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


@contextlib.contextmanager
def follower(kind: str, *words: str, count: int = 6) -> Iterator[Process]:
    """The product's side."""
    made = Process([sys.executable, __file__, "follow", kind, str(count), *words], told=True)
    try:
        yield made
    finally:
        made.end()


@contextlib.contextmanager
def piped(*stages: list[str]) -> Iterator[Process]:
    """Programs that are piped into each other; the last one is the one that is looked at."""
    source = None
    before: list[subprocess.Popen[bytes]] = []
    for argv in stages[:-1]:
        process = subprocess.Popen(argv, stdin=source, stdout=subprocess.PIPE)
        source = process.stdout
        before.append(process)
    last = Process.__new__(Process)
    last.process = subprocess.Popen(stages[-1], stdin=source, stdout=subprocess.PIPE, bufsize=0)
    try:
        yield last
    finally:
        for process in before:
            process.terminate()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        last.end()


def line(text: str, level: str = "INFO") -> bytes:
    """A line as the proxy writes it."""
    return f"2026-09-07T06:58:01.123Z {level} client/internal/routemanager/client/client.go:126: {text}\n".encode()


def latency(times: int = 200) -> list[Row]:
    """From before the write of a line to the decision; one side after the other, at random moments.

    The peers are a shell that acts once ``grep -m1`` has ended (what stands in scripts), and the output of a grep that runs on.
    """
    with tempfile.TemporaryDirectory() as folder:
        fifos = [str(Path(folder) / name) for name in ("ours", "grep", "shell")]
        for fifo in fifos:
            os.mkfifo(fifo)
        hands = [os.open(fifo, os.O_RDWR) for fifo in fifos]
        with follower("command", "cat", fifos[0]) as us, piped(["cat", fifos[1]], GREP) as grep:
            out = _latency("pipe", [us, grep], hands, ["cat", fifos[2]], times)
        files = [str(Path(folder) / f"{name}.log") for name in ("ours", "grep", "shell")]
        hands += (appending := [os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT) for file in files])
        with follower("file", files[0]) as us, piped(["tail", "-n0", "-F", files[1]], GREP) as grep:
            out += _latency("file", [us, grep], appending, ["tail", "-n0", "-F", files[2]], times)
        for one in hands:
            os.close(one)
    return out


def _latency(kind: str, sides: list[Process], hands: list[int], shell: list[str], times: int) -> list[Row]:
    took: list[list[float]] = [[], [], []]
    sign = line(f"{SIGN}: AAAA=", "WARN")
    for _ in range(times + 5):
        once = _shell(shell)
        for index, process in enumerate([*sides, once]):
            time.sleep(random.uniform(0.015, 0.03))  # noqa: S311 - no secret
            begun = time.perf_counter()
            os.write(hands[index], sign)
            assert process.answer()
            took[index].append(time.perf_counter() - begun)
        os.killpg(once.process.pid, signal.SIGKILL)
        once.end()
    (own50, own99), (grep50, grep99), (shell50, shell99) = (_quantiles(one[5:]) for one in took)
    measured = (
        f"p50 {own50:.2f} ms, p99 {own99:.2f} ms; `{shell[0]}` piped to `grep -m1`, then an act {shell50:.2f} and {shell99:.2f} ms: {own50 / shell50:.2f} x; "
        f"grep's output alone {grep50:.2f} and {grep99:.2f} ms"
    )
    return [(f"line written to decision, {kind}, {times} lines", measured, "p99 under 10 ms, p50 at most 2 x", own99 < 10 and own50 <= 2 * shell50)]


def _shell(source: list[str]) -> Process:
    """``source | grep -m1 && act``, of which only ``act`` says something."""
    script = 'sign=$1; shift; "$@" | { grep -m1 --line-buffered -F "$sign" >/dev/null && echo acted; }'
    return Process(["sh", "-c", script, "sh", SIGN, *source])


def _quantiles(took: list[float]) -> tuple[float, float]:
    ordered = sorted(took)
    return ordered[len(ordered) // 2] * 1000, ordered[int(len(ordered) * 0.99)] * 1000


def flood(seconds: float = 20, rate: int = 20_000, signs: int = 20) -> list[Row]:
    """20,000 lines a second with 50 fingerprints, a few of them found; grep reads the same stream at the same time."""
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, texts = (Path(folder) / name for name in ("ours", "theirs", "texts"))
        os.mkfifo(ours)
        os.mkfifo(theirs)
        texts.write_text("\n".join(fingerprints(50)) + "\n")
        hands = [os.open(name, os.O_RDWR) for name in (ours, theirs)]
        with follower("command", "cat", str(ours), count=50) as us, piped(["cat", str(theirs)], ["grep", "-cFf", str(texts)]) as peer:
            _pour(hands, 1.0, rate, 0)
            begun, before, small = time.monotonic(), [us.cpu_s(), peer.cpu_s()], us.memory_mib()
            sent = _pour(hands, seconds, rate, signs)
            wall = time.monotonic() - begun
            os.write(hands[0], line(END, "WARN"))
            for _ in range(sent // (rate // signs)):
                assert SIGN.encode() in us.answer()
            total = int(us.answer().split()[0])
            late = time.monotonic() - begun - wall
            shares = [100 * (process.cpu_s() - was) / wall for process, was in zip((us, peer), before, strict=True)]
            large = us.memory_mib()
        for hand in hands:
            os.close(hand)
    lost = rate + sent + 1 - total
    what = f"{sent / wall:,.0f} lines/s, 50 fingerprints, {seconds:g} s"
    return [
        (f"{what}, CPU", f"{shares[0]:.1f} % of a core (`grep -F` {shares[1]:.1f} %)", "under 50 %", shares[0] < 50),
        (f"{what}, lost lines", f"{lost} of {sent:,}, {late * 1000:.0f} ms behind at the end", "none, under 100 ms", lost == 0 and late < 0.1),
        (f"{what}, memory", f"{small:.1f} MiB at first, {large:.1f} MiB at last", "less than 2 MiB more", large - small < 2),
    ]


def _pour(hands: list[int], seconds: float, rate: int, signs: int) -> int:
    """Write that many lines a second, each 5 ms some, to both; a sign comes each ``rate / signs`` lines. Returns how many lines."""
    begun, sent, total = time.monotonic(), 0, int(seconds * rate)
    while sent < total:
        wanted = min(total, int((time.monotonic() - begun) * rate))
        if wanted > sent:
            part = b"".join(
                line(f"{SIGN}: {index}", "WARN") if signs and (index + 1) % (rate // signs) == 0 else line(f"relay {index} of [sni: git.example] closed")
                for index in range(sent, wanted)
            )
            for hand in hands:
                os.write(hand, part)
            sent = wanted
        time.sleep(0.005)
    return total


def replay(lines: int = 2_000_000) -> list[Row]:
    """As many lines of Docker's json-file through ``edgekeeper watch replay``, with the preset's fingerprints."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "netbird-proxy-json.log"
        with log.open("w") as file:
            for index in range(lines):
                second = index // 50
                stamp = f"2026-09-07T{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{index % 50 * 20:03d}"
                text = f'INFO tcp/router.go:401: relay \\"{index}\\" closed' if index % 100_000 else f"WARN client.go:126: {SIGN}: {index}"
                file.write(f'{{"log":"{stamp}Z {text}\\n","stream":"stderr","time":"{stamp}456789Z"}}\n')
        size = log.stat().st_size / 1e6
        argv = [EDGEKEEPER, "watch", "replay", str(log), "--preset", "netbird-proxy"]
        peak = "import resource,subprocess,sys; c=subprocess.call(sys.argv[1:],stdout=subprocess.DEVNULL); print(c,resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        begun = time.perf_counter()
        done = subprocess.run([sys.executable, "-I", "-S", "-c", peak, *argv], stdout=subprocess.PIPE, text=True, check=True)
        took = time.perf_counter() - begun
        ended, memory = (int(word) for word in done.stdout.split())
        assert ended == 0, ended
    measured = f"{took:.1f} s, {memory / 1024:.0f} MiB"
    return [
        (f"`watch replay` of {lines:,} lines ({size:.0f} MB, Docker's json-file)", measured, "under 10 s, under 100 MiB", took < 10 and memory < 100 * 1024)
    ]


def rows() -> list[Row]:
    """All of them."""
    return latency() + flood() + replay()


if __name__ == "__main__":
    if sys.argv[1:2] == ["follow"]:
        follow(sys.argv[2], sys.argv[4:], int(sys.argv[3]))
    else:
        found = rows()
        sys.stdout.writelines(f"| {what} | {measured} | {limit} | {'reached' if well else '**not reached**'} |\n" for what, measured, limit, well in found)
        sys.exit(0 if all(well for *_, well in found) else 1)
