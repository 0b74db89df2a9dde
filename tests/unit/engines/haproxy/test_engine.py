"""What HAProxy's check says, and what we make of it; intents kept and read again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.haproxy import CASES, FEATURES, SEAT, load_case, topology

from edgekeeper.engines.haproxy.engine import HaproxyEngine
from edgekeeper.ports import Cost

engine = HaproxyEngine(FEATURES)
VALID = "Configuration file is valid\n"
ALERTS = """[NOTICE]   (7) : haproxy version is 3.2
[ALERT]    (7) : config : parsing [/f/haproxy.cfg:9] : 'bind' : invalid port '0'
[ALERT]    (7) : config : Error(s) found in configuration file : /f/haproxy.cfg
[ALERT]    (7) : config : Fatal errors found in configuration.
"""


def test_argv() -> None:
    assert engine.check_argv("/f") == ("haproxy", "-c", "-V", "-f", "/f/haproxy.cfg")
    assert HaproxyEngine(FEATURES, "/b").run_argv("/f", SEAT) == ("/b", "-W", "-S", f"{SEAT.master},mode,600", "-f", "/f/haproxy.cfg")
    assert engine.run_argv("/f", None) == ("haproxy", "-W", "-f", "/f/haproxy.cfg"), "one of another version, whose seat cannot be read"


@pytest.mark.parametrize(
    ("code", "output", "said"),
    [
        (-11, VALID, "HAProxy's check died by SIGSEGV; the running engine keeps its files"),
        (-42, "", "HAProxy's check died by signal 42; the running engine keeps its files"),
        (0, "", "HAProxy's check exited 0 without saying that the configuration is valid; the running engine keeps its files"),
        (1, ALERTS, "HAProxy's check refused: parsing [/f/haproxy.cfg:9] : 'bind' : invalid port '0'"),
        (1, "cannot open /f/haproxy.cfg\n", "HAProxy's check refused: cannot open /f/haproxy.cfg"),
        (1, "", "HAProxy's check refused: nothing"),
    ],
)
def test_only_a_check_that_says_valid_accepts(code: int, output: str, said: str) -> None:
    assert engine.judge(code, output) == said


@pytest.mark.parametrize("output", [VALID, "[WARNING]  (7) : config : missing timeouts\nWarnings were found.\n" + VALID])
def test_an_accepted_check(output: str) -> None:
    assert engine.judge(0, output) is None


@given(st.integers(-64, 255), st.text())
def test_any_output_gets_one_line(code: int, output: str) -> None:
    said = engine.judge(code, output)
    assert said is None or (said.isprintable() and len(said) < 400)


@pytest.mark.parametrize("case", CASES)
def test_an_intent_and_its_seat_are_read_back_as_they_were(case: str) -> None:
    made = load_case(case).topology
    text = engine.dump(made, SEAT)
    assert engine.load(text) == (made, SEAT)
    assert engine.dump(*engine.load(text)) == text
    assert engine.load(engine.dump(made, None)) == (made, None)
    assert set(engine.files(made, SEAT)) == {"haproxy.cfg"}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"intent": {}, "seat": null}', "x"])
def test_what_cannot_be_read_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        engine.load(text)


def test_it_reloads_where_others_are_exchanged_and_shares_no_port_over_udp() -> None:
    assert engine.uncertain is Cost.RELOAD
    assert engine.steerable(topology()) == ()
    assert engine.change(topology(), topology()).cost is Cost.NOTHING
