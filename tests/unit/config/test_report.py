"""report: the short form of a class, spans of validity, and what is refused."""

from __future__ import annotations

import pytest

from edgekeeper.config.load import parse
from edgekeeper.config.report import ReportOf
from edgekeeper.errors import ConfigError


def read(section: str) -> ReportOf:
    return parse(f"node: edge-a\nreport: {section}\n", "edge.yaml").root.report


def test_a_class_is_a_list_of_networks_or_several_spans_of_time() -> None:
    short = read("{classes: {public: [127.0.0.1/32], lan: {networks: [192.0.2.0/24], until: 2026-10-01}}}")
    assert [c.networks for c in short.classes["public"]] == [("127.0.0.1/32",)]
    assert short.classes["lan"][0].until == "2026-10-01"
    spans = "{classes: {public: [{networks: [127.0.0.1/32], until: 2026-10-01}, {networks: [203.0.113.0/24], begin: 2026-10-01T06:00Z}]}}"
    assert [(c.begin, c.until) for c in read(spans).classes["public"]] == [(None, "2026-10-01"), ("2026-10-01T06:00Z", None)]


def test_what_is_not_said_has_the_values_of_the_reference() -> None:
    assert (read("{}").bad, read("{}").slo, read("{}").slo_period) == ((502, 503, 504), 0.999, 28 * 86400)


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("{classes: {public: [127.0.0.1/33]}}", "report.classes.public.0: "),
        ("{classes: {public: []}}", "report.classes.public: "),
        ("{classes: {public: {networks: [127.0.0.1/32], begin: yesterday}}}", "begin"),
        ("{slo: 1.0}", "report.slo"),
        ("{bad: [200]}", "report.bad.0"),
        ("{sources: [{match: a.log, clock: soon}]}", "report.sources.0.clock"),
        ("{sources: [{match: a.log, zone: 'Europe/Ber lin'}]}", "report.sources.0.zone"),
        ("{gaps: [{name: sealed, begin: x}]}", "report.gaps.0.end"),
        ("{feeds: {git: gitea}}", "report.feeds.git"),
    ],
)
def test_a_mistake_is_told_with_its_place(section: str, told: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(section)
    assert told in str(refused.value)
