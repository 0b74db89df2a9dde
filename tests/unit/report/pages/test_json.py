from __future__ import annotations

import json
import math
from dataclasses import replace

from tests.fakes import reports

from edgekeeper.model.time import Span
from edgekeeper.report.pages.json import document, plain

KEYS = [
    "title", "verdict", "can_judge", "window", "baseline", "outages", "clocks", "lines", "skipped_lines", "not_measured", "figures", "sources",
]  # fmt: skip


def test_the_keys_are_those_of_schema_1() -> None:
    made = document(reports.demo())
    assert list(made) == KEYS
    assert made["window"] == {
        "begin": "2026-09-07T04:48:00.000Z",
        "end": "2026-09-07T05:12:00.000Z",
        "begin_s": reports.BEGIN,
        "end_s": reports.END,
        "why": "first cordon - 60 s to last uncordon + 300 s",
    }
    assert made["skipped_lines"] == {"truncated": 2, "not text": 1}
    assert made["clocks"][2] == {"node": "gw-1", "min_s": None, "max_s": 0.412, "shift_s": 0.412, "method": "7 BGP notifications, one way", "moved": True}
    assert [f["id"] for f in made["figures"] if not f["measured"]] == ["F10"]


def test_an_outage_without_an_end_has_no_upper_bound() -> None:
    hurt = next(h for h in reports.hurts() if math.isinf(h.span.max_s))
    made = document(
        replace(reports.demo(), outages=(replace(hurt, span=Span(0.1 + 0.2, math.inf), first_bad=reports.BEGIN + 0.1 + 0.2, last_bad=reports.BEGIN + 41.3),))
    )
    assert made["outages"] == [
        {
            "router": "syncthing",
            "class": "lan",
            "min_s": 0.3,
            "max_s": None,
            "first_bad": "2026-09-07T04:48:00.300Z",
            "last_bad": "2026-09-07T04:48:41.300Z",
            "first_bad_s": 1788756480.3,
            "last_bad_s": 1788756521.3,
            "earliest": made["outages"][0]["earliest"],
            "latest": None,
            "requests": 11,
            "cause": "",
            "full": True,
            "source": "traefik-1",
        }
    ]


def test_pictures_come_with_their_numbers() -> None:
    figures = {f["id"]: f for f in document(reports.demo())["figures"]}
    assert figures["F3"]["multiples"][3]["minutes"][0] == ["2026-09-07T04:18:00.000Z", None, 0]
    assert figures["F5"]["smoke"][0]["slots"][21] == ["2026-09-07T04:55:00.000Z", None, None, 1.0]
    bars = next(r for r in figures["TIME"]["timeline"]["rows"] if r["name"] == "syncthing")["bars"]
    assert bars[0]["end"] is None
    assert figures["F1"]["table"]["columns"] == ["Route", "Status", "Requests", "Share"]
    assert "multiples" not in figures["F1"]


def test_it_is_json_whatever_was_read() -> None:
    for report in (reports.demo(), reports.hostile()):
        text = json.dumps(document(report), allow_nan=False)
        assert json.loads(text)["verdict"] == report.verdict


def test_what_json_lacks_becomes_what_it_has() -> None:
    assert plain({1: math.nan, "a": (1, {"y", "x"}, None, math.inf), "b": 2**70, "c": object, "d": True}) == {
        "1": None,
        "a": [1, ["x", "y"], None, None],
        "b": 2**70,
        "c": "<class 'object'>",
        "d": True,
    }
