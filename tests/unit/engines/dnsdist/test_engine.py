"""What dnsdist's check says, and what we make of it; intents kept and read again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.engines.dnsdist.engine import DnsdistEngine
from edgekeeper.engines.dnsdist.features import Features
from edgekeeper.ports import Cost

NEW = Features((2, 1, 3), yaml=True, protocols=("do53",), ebpf=True)
OLD = Features((1, 7, 3), yaml=False, protocols=("do53",), ebpf=True)
GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "dnsdist"
engine = DnsdistEngine(NEW)
OK = 'msg="Configuration OK" prio="Info"\nConfiguration \'/x/dnsdist.yml\' OK!\n'


def test_argv_names_the_file_of_the_renderer():
    assert engine.check_argv("/f") == ("dnsdist", "--check-config", "-C", "/f/dnsdist.yml")
    assert DnsdistEngine(OLD, binary="/b").run_argv("/f", None) == ("/b", "--supervised", "--disable-syslog", "-C", "/f/dnsdist.conf")
    assert DnsdistEngine(NEW, "lua").check_argv("/f")[-1] == "/f/dnsdist.conf"


@pytest.mark.parametrize(
    ("code", "output", "said"),
    [
        (-11, OK, "dnsdist's check died by SIGSEGV; the running engine keeps its files"),
        (-42, "", "dnsdist's check died by signal 42; the running engine keeps its files"),
        (0, " \n", "dnsdist's check said nothing and exited 0; the running engine keeps its files"),
        (0, "read it\n", "dnsdist's check exited 0 without saying that the configuration is OK; the running engine keeps its files"),
        (0, 'msg="Frontend uses an unknown protocol" prio="Error" x="dox"\n' + OK, "dnsdist's check refused: Frontend uses an unknown protocol"),
        (1, 'msg="Error while parsing" error="backends[0]: nmae" prio="Error"', "dnsdist's check refused: Error while parsing: backends[0]: nmae"),
        (1, "Lua configuration: attempt to call nil\n", "dnsdist's check refused: Lua configuration: attempt to call nil"),
        (
            0,
            "Error creating new server: x is not an address\nConfiguration '/x' OK!\n",
            "dnsdist's check refused: Error creating new server: x is not an address",
        ),
        (1, OK, "dnsdist's check refused: Configuration '/x/dnsdist.yml' OK!"),
    ],
)
def test_only_a_check_that_says_ok_and_no_error_accepts(code, output, said):
    assert engine.judge(code, output) == said


@pytest.mark.parametrize(
    "output", [OK, "Configuration '/x/dnsdist.conf' OK!\n", 'msg="Passing a plain-text password is not advised" prio="Info" error=""\n' + OK]
)
def test_an_accepted_check(output):
    assert engine.judge(0, output) is None


@given(st.integers(-64, 255), st.text())
def test_any_output_gets_one_line(code, output):
    said = engine.judge(code, output)
    assert said is None or (said.isprintable() and len(said) < 400)


@pytest.mark.parametrize("case", ["static-3", "tls", "dynblocks-ebpf"])
def test_an_intent_and_its_seat_are_read_back_as_they_were(case, dnsdist_case):
    made = dnsdist_case(GOLDEN / case, "2.1")
    text = engine.dump(made.topology, made.seat)
    assert engine.load(text) == (made.topology, made.seat)
    assert engine.dump(*engine.load(text)) == text
    assert engine.load(engine.dump(made.topology, None)) == (made.topology, None)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"intent": {}, "seat": null}', "x"])
def test_what_cannot_be_read_is_a_value_error(text):
    with pytest.raises(ValueError):
        engine.load(text)


def test_plain_dns_can_be_shared_by_two_processes_and_encrypted_cannot(dnsdist_case):
    made = dnsdist_case(GOLDEN / "tls", "2.1")
    assert engine.steerable(made.topology) == ("192.0.2.53:53", "[2001:db8::53]:53")
    assert engine.change(made.topology, made.topology).cost is Cost.NOTHING
    assert set(engine.files(made.topology, made.seat)) == {"dnsdist.yml", "dnsdist.lua"}
