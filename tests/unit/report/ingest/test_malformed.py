"""One defect in a log, a known 503 right before it, right behind it, and as the last line without an end: none of the three is lost."""

import json

import pytest

from edgekeeper.report import kinds
from edgekeeper.report.ingest import lines as lines_module
from edgekeeper.report.ingest import part as part_module
from edgekeeper.report.ingest.read import Input, read
from edgekeeper.report.rules import Rules

GOOD = {
    "ClientAddr": "192.0.2.7:40126",
    "DownstreamStatus": 200,
    "Duration": 1_811_271,
    "RouterName": "git@kubernetes",
    "StartUTC": "2026-09-07T04:55:10.503803Z",
    "RequestPath": "/" + "x" * 200,
}
PLAIN = json.dumps(GOOD).encode()
KNOWN = json.dumps({**GOOD, "DownstreamStatus": 503}).encode()
DEFECTS = {
    "truncated": (PLAIN[:90], {kinds.TRUNCATED}),
    "binary": (bytes(range(1, 10)) + bytes(range(128, 255)), {kinds.NOT_TEXT}),
    "NUL": (PLAIN[:40] + b"\0\0\0" + PLAIN[40:], {kinds.NOT_TEXT, kinds.NOT_THIS_FORMAT}),
    "bad UTF-8": (PLAIN.replace(b"git@", b"g\xff\xfe@"), {kinds.NOT_TEXT}),
    "plain text": (b"the proxy says hello", {kinds.NOT_THIS_FORMAT}),
    "unbalanced quote": (PLAIN.replace(b'"git@kubernetes"', b'"git@kubernetes'), {kinds.NOT_THIS_FORMAT, kinds.TRUNCATED}),
    "two objects in a line": (PLAIN + PLAIN, {None, kinds.NOT_THIS_FORMAT}),
    "missing key": (json.dumps({k: v for k, v in GOOD.items() if k != "DownstreamStatus"}).encode(), {kinds.MISSING_FIELD}),
    "null": (b"null", {kinds.NOT_THIS_FORMAT}),
    "array": (b"[1,2,3]", {kinds.NOT_THIS_FORMAT}),
    "wrong type": (json.dumps({**GOOD, "Duration": {"s": 1}}).encode(), {kinds.WRONG_TYPE}),
    "quoted status": (json.dumps({**GOOD, "DownstreamStatus": "503"}).encode(), {kinds.WRONG_TYPE}),
    "empty line": (b"", {None}),
    "long line": (json.dumps({**GOOD, "RequestPath": "y" * 5000}).encode(), {kinds.TOO_LONG}),
    "very long line": (json.dumps({**GOOD, "RequestPath": "z" * 90_000}).encode(), {kinds.TOO_LONG}),
    "deep nesting": (b'{"a":' * 1500 + b"1" + b"}" * 1500, {kinds.NOT_THIS_FORMAT, kinds.TOO_LONG, kinds.MISSING_FIELD}),
    "an odd end of line": (PLAIN + b"\r", {None}),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(lines_module, "LINE_MOST", 4096)
    monkeypatch.setattr(lines_module, "BLOCK", 2048)


def written(tmp_path, defect):
    path = tmp_path / "access.log"
    path.write_bytes(b"\n".join([PLAIN] * 40 + [KNOWN, defect, KNOWN] + [PLAIN] * 40 + [KNOWN]))
    return path


def counts(book):
    found = {}
    for lane in book.cells.lanes():
        for status, count in book.cells.statuses(lane).items():
            found[status] = found.get(status, 0) + count
    return found


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("name", DEFECTS)
def test_nothing_is_lost_but_the_defect(tmp_path, monkeypatch, name, fast):
    if not fast:
        monkeypatch.setattr(part_module, "TRAEFIK", "none")
    defect, reasons = DEFECTS[name]
    book = read([Input(str(written(tmp_path, defect)))], Rules(), jobs=1)
    source = book.sources["access.log"]
    assert counts(book)[503] == 3
    assert counts(book)[200] >= 80
    assert set(source.skipped) <= reasons
    assert None in reasons or sum(source.skipped.values()) == 1


def test_a_line_that_lost_its_newline_costs_what_is_glued_to_it_and_no_more(tmp_path):
    path = tmp_path / "access.log"
    path.write_bytes(b"\n".join([PLAIN] * 40 + [KNOWN, PLAIN[:90] + KNOWN, KNOWN]) + b"\n")
    book = read([Input(str(path))], Rules(), jobs=1)
    assert counts(book) == {200: 40, 503: 2}
    assert sum(book.sources["access.log"].skipped.values()) == 1


def test_lines_of_no_known_format_are_counted_and_said(tmp_path):
    path = tmp_path / "what.log"
    path.write_bytes(b"hello\n" * 50)
    source = read([Input(str(path))], Rules(), jobs=1).sources["what.log"]
    assert (source.lines, dict(source.skipped), source.format) == (50, {kinds.NOT_THIS_FORMAT: 50}, "")
    assert "no format that is known" in source.warnings[0]
