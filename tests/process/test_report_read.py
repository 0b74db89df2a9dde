"""Reading logs as they lie on disks: packed, cut off, huge lines, noise; in several processes at once; with flat memory."""

import gzip
import json
import lzma
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from backports import zstd

from edgekeeper.errors import MissingError, StepFailedError, UsageError
from edgekeeper.report import kinds
from edgekeeper.report.ingest import read as module
from edgekeeper.report.ingest import workers
from edgekeeper.report.ingest.cells_file import write
from edgekeeper.report.ingest.files import expand
from edgekeeper.report.ingest.part import Part
from edgekeeper.report.ingest.read import Input, read
from edgekeeper.report.rules import Group, Rules

RULES = Rules(groups=(Group("lan", ("192.0.2.0/25",)), Group("vpn", ("192.0.2.128/25",))))
MIB = 2**20
PACKS = {
    "gzip": gzip.compress,
    "several gzip": lambda data: gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]),
    "zstd": zstd.compress,
    "xz": lzma.compress,
}


def log(lines, seed=7):
    """A log with running numbers and its truth: how many of each route, class and status."""
    chance = random.Random(seed)
    out, truth = [], {}
    for number in range(lines):
        status = chance.choices((200, 304, 503, 502, 499, 500), (900, 60, 20, 10, 5, 5))[0]
        router, host = f"r{chance.randrange(5)}@kubernetes", chance.randrange(1, 255)
        at = number * 60 + chance.randrange(60_000)
        stamp = f"2026-09-07T{at // 3_600_000:02d}:{at // 60_000 % 60:02d}:{at // 1000 % 60:02d}.{at % 1000:03d}Z"
        row = {"ClientAddr": f"192.0.2.{host}:99", "DownstreamStatus": status, "Duration": 10 ** chance.randrange(5, 10), "RequestCount": number + 1}
        out.append(json.dumps(row | {"RequestPath": "/" + "x" * 300, "RouterName": router, "StartUTC": stamp}))
        key = router, "lan" if host < 128 else "vpn", status
        truth[key] = truth.get(key, 0) + 1
    return "\n".join(out).encode() + b"\n", truth


def counts(book):
    found = {}
    for lane in book.cells.lanes():
        for status, count in book.cells.statuses(lane).items():
            found[lane.router, lane.group, status] = found.get((lane.router, lane.group, status), 0) + count
    return found


def _cells(cells, lane):
    return str([(*cell[:6], *(round(at, 4) for at in cell[6:])) for cell in cells.cells(lane)])


def _minutes(cells, lane):
    return [(m.minute, sorted(m.statuses.items()), m.took) for m in cells.minutes(lane)]


def told(book):
    """All of a book that does not depend on how it was divided."""
    cells = book.cells
    clients = sorted((c.who, c.bad) for c in cells.clients())
    lanes = [(lane, cells.total(lane), _cells(cells, lane), _minutes(cells, lane), cells.causes(lane)) for lane in cells.lanes()]
    source = book.sources["access.log"]
    return lanes, clients, source.lines, source.skipped, source.first, source.last, source.numbers


@pytest.fixture(scope="module")
def made():
    return log(20_000)


@pytest.mark.parametrize("jobs", [2, 3])
def test_several_processes_read_what_one_reads(tmp_path, monkeypatch, made, jobs):
    text, truth = made
    path = tmp_path / "access.log"
    path.write_bytes(text)
    alone = read([Input(str(path))], RULES, jobs=1)
    monkeypatch.setattr(module, "_PIECE", len(text) // 11)
    parts = []
    together = read([Input(str(path))], RULES, jobs=jobs, progress=parts.append)
    assert len(parts) == min(4 * jobs, 11)
    assert counts(together) == truth
    assert told(together) == told(alone)
    assert together.sources["access.log"].numbers.expected == 20_000


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_packed_logs_are_recognised_by_their_content(tmp_path, made, pack):
    text, truth = made
    path = tmp_path / "access.log"
    path.write_bytes(pack(text))
    assert counts(read([Input(str(path))], RULES, jobs=2)) == truth


def test_a_rotated_set_is_one_source(tmp_path, made):
    text, truth = made
    lines = text.splitlines(keepends=True)
    (tmp_path / "access.log.2.gz").write_bytes(gzip.compress(b"".join(lines[:8000])))
    (tmp_path / "access.log.1").write_bytes(b"".join(lines[8000:15000]))
    (tmp_path / "access.log").write_bytes(b"".join(lines[15000:]))
    book = read([Input(str(p)) for p in sorted(tmp_path.iterdir())], RULES, jobs=2)
    assert counts(book) == truth
    source = book.sources["access.log"]
    assert list(book.sources) == ["access.log"]
    assert (source.lines, source.numbers.seen, source.numbers.expected, source.numbers.resets) == (20_000, 20_000, 20_000, 0)


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize("spoil", ["cut", "changed"])
def test_of_a_damaged_archive_what_comes_before_counts(tmp_path, made, pack, spoil):
    text, _ = made
    packed = pack(text)
    half = len(packed) // 2
    path = tmp_path / "access.log"
    path.write_bytes(packed[:half] if spoil == "cut" else packed[:half] + bytes(64) + packed[half + 64 :])
    book = read([Input(str(path))], RULES, jobs=1)
    source = book.sources["access.log"]
    assert source.skipped[kinds.TORN_COMPRESSION] == 1
    assert source.lines > 5_000
    assert "cannot be read to its end" in source.warnings[0]


def test_what_cannot_be_read_is_said_before_anything_is_read(tmp_path):
    with pytest.raises(MissingError, match="No such file"):
        read([Input(str(tmp_path / "none"))], RULES, jobs=2)
    with pytest.raises(UsageError, match="is not a format"):
        read([Input(str(tmp_path), format="morse")], RULES)
    with pytest.raises(MissingError, match="Is a directory"):
        read([Input(str(tmp_path))], RULES)
    (tmp_path / "empty").write_bytes(b"")
    assert read([Input(str(tmp_path / "empty"))], RULES).sources["empty"].lines == 0


CHILD = """
import resource, sys
from edgekeeper.report.ingest.files import expand
from edgekeeper.report.ingest.part import Part
from edgekeeper.report.ingest.read import Input, read
from edgekeeper.report.rules import Rules
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
book = read([Input(sys.argv[1])], Rules(), jobs=1)
source = next(iter(book.sources.values()))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(grown // 1024, source.lines, sum(book.cells.total(lane).bad for lane in book.cells.lanes()), dict(source.skipped))
"""


def child(path, **more):
    run = subprocess.run([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, check=True, timeout=60, **more)
    grown, lines, bad, skipped = run.stdout.decode().split(" ", 3)
    return int(grown), int(lines), int(bad), skipped


def test_a_line_of_a_gibibyte_costs_no_memory(tmp_path):
    known = log(50, seed=3)[0]
    bad = known.count(b'"DownstreamStatus": 503') + known.count(b'"DownstreamStatus": 502')
    path = tmp_path / "access.log"
    with path.open("wb") as out:
        out.write(known)
        out.truncate(2**30)  # a line of NULs, which no disk holds
        out.seek(2**30)
        out.write(b"\n" + known)
    grown, lines, found, skipped = child(path)
    assert grown < 24
    assert (lines, found) == (101, 2 * bad)
    assert kinds.TOO_LONG in skipped


def test_noise_costs_no_memory_and_is_counted(tmp_path):
    known = log(400, seed=3)[0]
    (tmp_path / "access.log").write_bytes(known + os.urandom(24 * MIB) + b"\n" + known)
    grown, lines, _, skipped = child(tmp_path / "access.log")
    assert grown < 40
    assert lines > 90_000
    assert kinds.NOT_TEXT in skipped
    (tmp_path / "access.log").write_bytes(os.urandom(16 * MIB))
    grown, lines, found, _ = child(tmp_path / "access.log")
    assert (grown < 40, found) == (True, 0)


def test_standard_input_is_read_once(made):
    text, truth = made
    _, lines, bad, skipped = child("-", input=text)
    assert (lines, skipped.strip()) == (20_000, "{}")
    assert bad == sum(count for (*_, status), count in truth.items() if status in {502, 503})
    assert child("-", input=gzip.compress(text))[1:3] == (20_000, bad)


def test_cells_of_yesterday_are_an_input_like_any_other(tmp_path, made):
    text, truth = made
    lines = text.splitlines(keepends=True)
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "access.log").write_bytes(b"".join(lines[:9000]))
    (tmp_path / "access.log").write_bytes(b"".join(lines[9000:]))
    write(read([Input(str(tmp_path / "old" / "access.log"))], RULES), tmp_path / "cells.jsonl")
    book = read([Input(str(tmp_path / "cells.jsonl")), Input(str(tmp_path / "access.log"))], RULES, jobs=2)
    assert counts(book) == truth
    assert (list(book.sources), book.sources["access.log"].lines, book.sources["access.log"].numbers.seen) == (["access.log"], 20_000, 20_000)
    (tmp_path / "cells.jsonl").write_bytes((tmp_path / "cells.jsonl").read_bytes()[:-3000])
    torn = read([Input(str(tmp_path / "cells.jsonl"))], RULES).sources["cells.jsonl"]
    assert "ends too early" in torn.warnings[0]


@pytest.mark.parametrize("wrap", ["cri", "docker"])
def test_lines_in_an_envelope_are_read_as_fast_and_as_well(tmp_path, made, wrap):
    text, truth = made
    head = "2026-09-07T00:00:01.000000001Z"
    dated = b'{"ClientAddr":"192.0.2.1:9","DownstreamStatus":504,"Duration":500000000,"RouterName":"late"}'  # its time is the envelope's
    lines = [*text.splitlines()[:500], dated, *text.splitlines()[500:]]
    wrapped = [
        f"{head} stdout F ".encode() + line if wrap == "cri" else b'{"log":' + json.dumps(line.decode() + "\n").encode() + f',"time":"{head}"}}'.encode()
        for line in lines
    ]
    cut = [f"{head} stdout P ".encode() + lines[7][:50], f"{head} stdout F ".encode() + lines[7][50:]] if wrap == "cri" else [wrapped[7]]
    (tmp_path / "access.log").write_bytes(b"\n".join([*wrapped[:7], *cut, *wrapped[8:]]) + b"\n")
    book = read([Input(str(tmp_path / "access.log"))], RULES, jobs=2)
    assert counts(book) == {**truth, ("late", "lan", 504): 1}
    (lane,) = (lane for lane in book.cells.lanes() if lane.router == "late")
    assert book.cells.cells(lane)[0].bad_first_start == pytest.approx(1788739200.5, abs=1e-3)


def test_a_reading_process_that_is_killed_is_said(tmp_path, monkeypatch, made):
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(made[0])
    monkeypatch.setattr(workers, "_read", die)  # by its name: where this process has threads, the others are no copies of it
    with pytest.raises(StepFailedError, match="was killed"):
        read([Input(str(tmp_path / name)) for name in ("a.log", "b.log")], RULES, jobs=2)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def test_an_interrupted_reading_leaves_nobody_behind(tmp_path, monkeypatch, made):
    for name in ("a.log", "b.log", "c.log"):
        (tmp_path / name).write_bytes(made[0])
    monkeypatch.setattr(workers, "_read", sleep)
    monkeypatch.setattr(threading, "active_count", lambda: 1)  # a copy of this process: a new one could not import the function above
    running = workers.spread([Part(str(tmp_path / name), name) for name in ("a.log", "b.log", "c.log")], RULES, 2)
    begun = time.monotonic()
    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(running)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - begun < 10
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_reading_that_is_ended_from_outside_leaves_nobody_behind(tmp_path, made, end):
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(made[0])
    code = f"""
from pathlib import Path
import os, time
from edgekeeper.report.ingest import workers
from edgekeeper.report.ingest.part import Part
from edgekeeper.report.rules import Rules
def read_part(*_):
    os.write(1, f"{{os.getpid()}}\\n".encode())  # in one piece: two write into one pipe
    time.sleep(60)
workers.read_part = read_part
list(workers.spread([Part("{tmp_path}/a.log", "a"), Part("{tmp_path}/b.log", "b")], Rules(), 2))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        workers_of_it = [int(process.stdout.readline()) for _ in range(2)]
        process.send_signal(end)
        assert process.stdout.read() == b""  # ends when the last one has closed it
    assert len(set(workers_of_it)) == 2


def interrupt(*_):
    raise KeyboardInterrupt


def sleep(part, *_):
    if part.name == "a.log":
        os.kill(os.getppid(), signal.SIGUSR1)
    time.sleep(30)


def test_of_a_folder_what_is_no_log_is_left_out_and_said(tmp_path, made):
    folder = tmp_path / "rec"
    folder.mkdir()
    (folder / "access.log").write_bytes(made[0])
    (folder / "notes.txt").write_text("hello\n" * 500)
    (folder / "data.bin").write_bytes(os.urandom(5000))
    (folder / "again.log").symlink_to("access.log")
    (tmp_path / "outside.log").write_bytes(made[0])
    (folder / "outside.log").symlink_to(tmp_path / "outside.log")
    book = read([Input(path, within=str(folder)) for path in expand([str(folder)])], RULES, jobs=1)
    assert counts(book) == made[1]
    (source,) = book.sources.values()
    assert not source.skipped
    assert [w for w in source.warnings if "2 files are of no format that is known and left out: data.bin, notes.txt" in w]
    named = read([Input(str(folder / "notes.txt"))], RULES).sources["notes.txt"]
    assert named.skipped == {kinds.NOT_THIS_FORMAT: 500}


def test_a_file_named_twice_is_read_once(tmp_path, made):
    (tmp_path / "access.log").write_bytes(made[0])
    (tmp_path / "link").symlink_to("access.log")
    assert counts(read([Input(str(tmp_path / "access.log")), Input(str(tmp_path / "link"))], RULES, jobs=1)) == made[1]


def test_a_copy_that_is_read_beside_its_log_is_said(tmp_path, made):
    (tmp_path / "access.log").write_bytes(made[0])
    (tmp_path / "access.log.1").write_bytes(made[0])
    (tmp_path / "copy.log.gz").write_bytes(gzip.compress(made[0]))
    once = read([Input(str(tmp_path / "access.log"))], RULES, jobs=1)
    assert once.sources["access.log"].warnings == []
    book = read([Input(str(tmp_path / name)) for name in ("access.log", "access.log.1", "copy.log.gz")], RULES, jobs=1)
    for name, copy in (("access.log", "access.log.1"), ("copy.log", "copy.log.gz")):
        assert f"{copy} begins with the same line as {tmp_path}/access.log: what is in both is counted twice" in " ".join(book.sources[name].warnings)


def test_a_document_that_ends_too_early_is_said(tmp_path):
    event = {"kind": "Event", "involvedObject": {"kind": "Pod", "namespace": "a", "name": "b"}, "reason": "Killing", "lastTimestamp": "2026-09-07T04:50:00Z"}
    text = json.dumps({"kind": "List", "items": [{**event, "metadata": {"uid": str(n)}} for n in range(3)]}, indent=2)
    for end, kept, skipped in ((None, 3, 0), (-40, 2, 1)):
        (tmp_path / "events.json").write_text(text[:end])
        book = read([Input(str(tmp_path / "events.json"))], RULES, jobs=1)
        assert len(book.marks) == kept
        assert book.sources["events.json"].skipped[kinds.TRUNCATED] == skipped


def test_a_log_that_is_read_beside_its_cells_is_said(tmp_path, made):
    log, cells = tmp_path / "access.log", tmp_path / "kept.jsonl"
    log.write_bytes(made[0])
    write(read([Input(str(log))], RULES, jobs=1), cells)
    assert read([Input(str(cells))], RULES, jobs=1).sources["access.log"].warnings == []
    for both in ((log, cells), (cells, log)):
        (warning,) = (w for w in read([Input(str(path)) for path in both], RULES, jobs=1).sources["access.log"].warnings if "counted twice" in w)
        assert warning.startswith("cells that were kept of it")


@pytest.mark.parametrize("back_s", [0, 30, 400])
def test_a_clock_that_was_set_back_amid_a_log_is_said(tmp_path, back_s):
    stamp = '198.51.100.4:52562 [07/Sep/2026:{:02}:{:02}:{:02}.000] web apps/app-1 0/0/0/1/1 200 116 - - ---- 4/2/1/1/0 0/0 "GET /ok HTTP/1.1"\n'
    row = (
        '{{"StartUTC":"2026-09-07T{:02}:{:02}:{:02}Z","Duration":1000,"DownstreamStatus":200,"RouterName":"web",'
        '"ClientAddr":"198.51.100.4:5","RequestCount":1,"RetryAttempts":0}}\n'
    )
    for name, form in (("lb.log", stamp), ("access.log", row)):
        times = [36000 + t - (back_s if t > 2500 else 0) for t in range(5000)]
        (tmp_path / name).write_text("".join(form.format(t // 3600, t // 60 % 60, t % 60) for t in times))
        book = read([Input(str(tmp_path / name))], RULES, jobs=1)
        assert any("go back in time" in w for w in book.sources[name].warnings) == (back_s > 60)
