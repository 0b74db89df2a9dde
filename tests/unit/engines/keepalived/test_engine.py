"""The engine's side of the port: what its check said, what it is started with, what is kept of it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.fakes.keepalived import CASES, FEATURES, SEAT, configs, load_case, of, root_of, topology

from edgekeeper.engines.keepalived.engine import KeepalivedEngine
from edgekeeper.ports import Cost

OLD, MIDDLE, NEW = (KeepalivedEngine(f, "/usr/sbin/keepalived") for f in FEATURES.values())

# What the checks of 2.2.7, 2.3.4 and 2.4.3 wrote and exited with.
REFUSED = [
    ("(/etc/lab/k1.conf: Line 11) number '300' outside range [1, 255]\n(/etc/lab/k1.conf: Line 11) (VI_dns) Priority not valid! must be between 1 & 255. Using default 100\n", 5,
     "line 11: number '300' outside range [1, 255]; line 11: (VI_dns) Priority not valid! must be between 1 & 255. Using default 100"),
    ("(/etc/lab/k2.conf: Line 9) WARNING - interface nope0 for vrrp_instance VI_dns doesn't exist\nNon-existent interface specified in configuration\n", 5,
     "line 9: WARNING - interface nope0 for vrrp_instance VI_dns doesn't exist; Non-existent interface specified in configuration"),
    ("(/etc/lab/k3.conf: Line 13) Unknown keyword 'no_preempt'\n", 5, "line 13: Unknown keyword 'no_preempt'"),
    ("(Line 7) Unknown keyword 'vrrp_instance'\n(Line 7) Unexpected '{' - ignoring\n" + 4 * "There are 2 missing '}'s or extra '{'s\n", 5,
     "(Line 7) Unknown keyword 'vrrp_instance'; (Line 7) Unexpected '{' - ignoring; There are 2 missing '}'s or extra '{'s"),
    ("SECURITY VIOLATION - scripts are being executed but script_security not enabled.\n", 6, "SECURITY VIOLATION - scripts are being executed"),
    ("Disabling track script chk due to insecure\n", 5, "Disabling track script chk due to insecure"),
    ("Disabling track script chk since not found/accessible\n", 5, "Disabling track script chk since not found/accessible"),
    ("(/etc/lab/h2.conf: Line 14) (VI_dns) auth_hmac key file '/etc/lab/key53g' is readable by group or others\n", 6, "line 14: (VI_dns) auth_hmac key file"),
    ("Config files missing '/nope.conf'.\n", 0, "Config files missing '/nope.conf'."),
    ("", 5, "it exited 5 and said nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "code", "told"), REFUSED)
def test_what_its_check_refuses_is_one_sentence_without_our_paths(output: str, code: int, told: str) -> None:
    found = MIDDLE.judge(code, output)
    assert found is not None
    assert found.startswith(f"keepalived's check refused: {told}")
    assert "\n" not in found
    assert ".conf: Line" not in found
    assert len(found) < 450


@pytest.mark.parametrize("code", [-15, -11, -9, -6])
def test_a_check_that_died_has_refused(code: int) -> None:
    assert "SIG" in str(MIDDLE.judge(code, ""))
    assert MIDDLE.judge(-99, "") is not None


@pytest.mark.parametrize("output", ["", "\n", "NOTICE: setting config option max_auto_priority should result in better keepalived performance\n"])
def test_what_it_accepts(output: str) -> None:
    assert MIDDLE.judge(0, output) is None


def test_nothing_of_what_it_says_can_do_something_to_a_terminal() -> None:
    assert str(MIDDLE.judge(5, "\x1b[2J(Line 1) Unknown keyword 'x\x07'")).isprintable()


def test_the_command_line_suits_the_build() -> None:
    def of(engine: KeepalivedEngine) -> list[str]:
        return list(engine.run_argv("/state/current", SEAT))

    files = [f"--pid={SEAT.folder}/keepalived-parent.pid", f"--vrrp_pid={SEAT.folder}/keepalived-vrrp.pid"]
    more = [f"--checkers_pid={SEAT.folder}/keepalived-checkers.pid", f"--bfd_pid={SEAT.folder}/keepalived-bfd.pid"]
    head = [
        "env",
        f"TMPDIR={SEAT.folder}/dumps",
        "/usr/sbin/keepalived",
        "--dont-fork",
        "--log-console",
        "--log-detail",
        "--use-file=/state/current/keepalived.conf",
    ]
    assert of(OLD) == of(MIDDLE) == [*head, "--vrrp", *files, *more]
    assert of(NEW) == [*head, *files], "a build of VRRP alone takes --vrrp for --vrrp_pid and swallows what follows"


def test_only_2_2_7_is_asked_about_a_twin_of_the_file() -> None:
    assert OLD.check_argv("/x") == ("/usr/sbin/keepalived", "-t", "-f", "/x/keepalived-check.conf")
    assert MIDDLE.check_argv("/x") == NEW.check_argv("/x") == ("/usr/sbin/keepalived", "-t", "-f", "/x/keepalived.conf")
    for engine in (OLD, MIDDLE, NEW):
        assert engine.check_argv("/x")[-1].removeprefix("/x/") in engine.files(topology(), SEAT)


@pytest.mark.parametrize("name", CASES)
def test_what_is_kept_is_read_back(name: str) -> None:
    wanted = load_case(name).topology
    assert MIDDLE.load(MIDDLE.dump(wanted, SEAT)) == (wanted, SEAT)
    assert MIDDLE.load(MIDDLE.dump(wanted, None)) == (wanted, None)


@pytest.mark.parametrize("preempt", [True, False, "0s", "1s"])
def test_no_and_a_delay_of_nothing_are_kept_apart(preempt: bool | str) -> None:
    wanted = topology(preempt=preempt)
    again, _ = MIDDLE.load(MIDDLE.dump(wanted, None))
    assert MIDDLE.files(again, SEAT) == MIDDLE.files(wanted, SEAT)


@settings(max_examples=3, deadline=None)
@given(configs(most_nodes=3, most_vips=3))
def test_whatever_is_kept_is_the_same_again_and_costs_nothing(config: dict[str, object]) -> None:
    root = root_of(config)
    assert root.node is not None
    wanted = of(root, root.node, MIDDLE.features)
    again, _ = MIDDLE.load(MIDDLE.dump(wanted, SEAT))
    assert again == wanted
    assert MIDDLE.change(again, wanted).cost is Cost.NOTHING
    assert MIDDLE.dump(again, SEAT) == MIDDLE.dump(wanted, SEAT)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"intent": {}, "seat": null}', "x" * 100])
def test_what_cannot_be_read_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        MIDDLE.load(text)


def test_two_never_stand_beside_each_other() -> None:
    assert MIDDLE.steerable(topology()) == ()
    assert MIDDLE.uncertain is Cost.RELOAD
