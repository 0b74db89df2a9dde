"""Golden files: what is written for each version, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgekeeper.engines.dnsdist import render
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.errors import UsageError

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "dnsdist"
CASES = sorted(path.parent for path in GOLDEN.glob("*/case.yaml"))


def forms(case: Path) -> list[str]:
    return ["2.1"] if "quic: true" in (case / "case.yaml").read_text() else ["1.7", "1.9", "2.1", "2.1-lua"]


@pytest.mark.parametrize(("case", "form"), [pytest.param(case, form, id=f"{case.name}-{form}") for case in CASES for form in forms(case)])
def test_the_same_config_is_written_in_the_same_bytes(case, form, dnsdist_case, golden):
    made = dnsdist_case(case, form)
    golden.check(case / form, render.files(made.topology, made.seat, made.features, made.renderer))


def test_the_cases_that_the_product_promises_are_all_there():
    assert {case.name for case in CASES} >= {
        "single-loopback", "static-3", "endpointslice", "tls", "authoritative-cache", "dynblocks-ebpf", "tls-quic",
    }  # fmt: skip


@pytest.mark.parametrize("case", [case for case in CASES if "quic" not in case.name], ids=lambda case: case.name)
def test_no_rendering_lifts_dnsdists_guard_nor_shows_a_web_secret(case, dnsdist_case):
    for form in ("1.9", "2.1"):
        made = dnsdist_case(case, form)
        text = "".join(render.files(made.topology, made.seat, made.features, made.renderer).values())
        assert "enableLuaConfiguration" not in text
        assert made.seat.api_key not in text
        assert made.seat.password not in text


OLD = Features((1, 9, 16), yaml=False, protocols=("do53",), ebpf=False)
NEW = Features((2, 1, 3), yaml=True, protocols=("do53",), ebpf=False)


def test_the_renderer_follows_the_engine_unless_said():
    assert render.choose("auto", OLD) == "lua"
    assert render.choose("auto", NEW) == "yaml"
    assert render.choose("lua", NEW) == "lua"
    assert render.main_file(NEW, "auto") == "dnsdist.yml"
    assert render.main_file(OLD, "auto") == "dnsdist.conf"


def test_yaml_for_an_engine_that_reads_none_is_refused_with_a_way_out():
    with pytest.raises(UsageError, match=r"1\.9\.16 reads no YAML; say engine\.renderer: auto"):
        render.choose("yaml", OLD)
