from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.engines.haproxy.stats import (
    STATE_FIELDS,
    ServerStat,
    Worker,
    format_servers_state,
    parse_info,
    parse_proc,
    parse_servers_state,
    parse_stat,
    parse_uptime,
    split_address,
)

SAID = Path(__file__).resolve().parents[3] / "golden" / "haproxy" / "said"
VERSIONS = ("2.6", "3.0", "3.2")
TRUTH = {"cp1": ("DOWN", 1), "cp2": ("UP", 1), "cp3": ("MAINT", 1)}


def said(version: str, name: str) -> str:
    return (SAID / version / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", VERSIONS)
def test_show_stat_of_each_version(version: str) -> None:
    stats = parse_stat(said(version, "show_stat"))
    assert {s.server: (s.status, s.scur) for s in stats.servers} == TRUTH
    cp1 = stats.server("api", "cp1")
    assert cp1 is not None
    assert (cp1.check, cp1.check_desc, cp1.mode) == ("L4CON", "Layer4 connection problem", "tcp")
    assert cp1.address.startswith("127.0.0.1:")
    assert cp1.lastchg is not None
    assert [b.name for b in stats.backends] == ["api"]
    assert stats.server("api", "cp9") is None
    assert parse_stat(said(version, "show_stat_user")).servers[0].address == ""


def test_which_words_mean_down() -> None:
    down = {text: ServerStat("b", "s", text).down for text in ("DOWN", "DOWN 1/2", "DOWN (agent)", "MAINT", "MAINT (via b/s)", "MAINT(via b/s)")}
    assert all(down.values()), down
    not_down = {text: ServerStat("b", "s", text).down for text in ("UP", "UP 1/3", "NOLB", "NOLB 1/2", "DRAIN", "no check", "DOWNHILL", "MAINTAIN", "")}
    assert not any(not_down.values()), not_down
    assert ServerStat("b", "s", "MAINT (resolution)").unresolved
    assert not ServerStat("b", "s", "MAINT (via b/s)").unresolved
    usable = [text for text in ("UP", "UP 2/3", "no check", "DRAIN", "NOLB", "DOWN", "MAINT", "?") if ServerStat("b", "s", text).usable]
    assert usable == ["UP", "UP 2/3", "no check"]
    assert not ServerStat("b", "s", "UP", weight=0).usable


def test_a_check_in_progress_is_the_check_before() -> None:
    text = "# pxname,svname,scur,status,check_status\napi,cp1,2,DOWN,* L7TOUT\n"
    assert parse_stat(text).servers[0].check == "L7TOUT"


def test_commas_and_quotes_inside_a_value_move_no_column() -> None:
    text = '# pxname,svname,status,last_chk,scur\napi,cp1,DOWN,"a ""b"", c",7\napi,cp2,UP,"unclosed,9\n'
    first, second = parse_stat(text).servers
    assert (first.check_desc, first.scur) == ('a "b", c', 7)
    assert (second.server, second.status, second.scur) == ("cp2", "UP", 0)


@given(st.sampled_from(VERSIONS), st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_columns_in_any_order_with_any_left_out_pair_the_same_names(version: str, chance: random.Random) -> None:
    lines = said(version, "show_stat").splitlines()
    names = lines[0].removeprefix("# ").rstrip(",").split(",")
    must = [names.index(name) for name in ("pxname", "svname", "status", "scur")]
    kept = must + chance.sample([i for i in range(len(names)) if i not in must], chance.randrange(40))
    chance.shuffle(kept)
    text = "# " + ",".join(names[i] for i in kept) + ",\n"
    text += "\n".join(",".join(line.split(",")[i] for i in kept) + "," for line in lines[1:] if line)
    assert {s.server: (s.status, s.scur) for s in parse_stat(text).servers} == TRUTH


@given(st.sampled_from(VERSIONS), st.integers(0, 6000))
@settings(max_examples=30)
def test_what_is_cut_off_is_missing_and_never_wrong(version: str, length: int) -> None:
    for server in parse_stat(said(version, "show_stat")[:length]).servers:
        status, scur = TRUTH[server.server]
        assert status.startswith(server.status)
        assert server.scur == scur


ANSWERS = ("show_stat", "show_info", "show_proc", "show_servers_state")
PARSERS = (parse_stat, parse_info, parse_proc, parse_servers_state)


@given(st.sampled_from(VERSIONS), st.sampled_from(ANSWERS), st.integers(0, 5000), st.text(max_size=30), st.integers(0, 60))
@settings(max_examples=40)
def test_nothing_that_is_said_is_an_error(version: str, name: str, place: int, noise: str, removed: int) -> None:
    text = said(version, name)
    for parser in PARSERS:
        parser(text[:place] + noise + text[place + removed :])
        parser(noise)


@pytest.mark.parametrize("version", VERSIONS)
def test_show_info_of_each_version(version: str) -> None:
    info = parse_info(said(version, "show_info"))
    assert info.version.startswith(version)
    assert info.pid > 1
    assert info.max_conn == 9900
    assert info.curr_conns is not None
    assert info.start_time is not None
    assert not info.stopping
    assert info.raw["Name"] == "HAProxy"
    assert parse_info("").pid == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_show_proc_of_each_version(version: str) -> None:
    current, old = parse_proc(said(version, "show_proc"))
    assert (current.current, current.reloads, current.version.startswith(version)) == (True, 0, True)
    assert (old.current, old.reloads) == (False, 1)
    assert parse_info(said(version, "show_info")).pid == current.pid


def test_programs_the_master_and_older_columns_are_no_mistake() -> None:
    text = (
        "#<PID>          <type>          <relative PID>  <reloads>       <uptime>        <version>\n"
        "11              master          0               2 [failed: 1]   1d02h03m04s     2.2.9\n"
        "# workers\n12              worker          1               0               0d00h00m10s     2.2.9\n"
        "# old workers\n13              worker          [was: 1]        2               1d00h00m10s     2.2.8\n"
        "# programs\n14              worker          -               0               0d00h00m10s     -\n"
    )
    assert parse_proc(text) == (Worker(12, True, 0, 10, "2.2.9"), Worker(13, False, 2, 86410, "2.2.8"))


def test_short_times() -> None:
    assert [parse_uptime(text) for text in ("0s", "1m5s", "59m54s", "3d4h", "1h", "0d00h00m01s")] == [0, 65, 3594, 273600, 3600, 1]
    assert [parse_uptime(text) for text in ("", "x", "5", "1s1m", "-1s")] == [None] * 5


@pytest.mark.parametrize("version", VERSIONS)
def test_a_state_that_is_written_is_what_was_read(version: str) -> None:
    text = said(version, "show_servers_state")
    rows = parse_servers_state(text)
    assert [(row.backend, row.server, row.op_state, row.admin_state & 1, row.address) for row in rows] == [
        ("api", "cp1", 0, 0, "127.0.0.1"),
        ("api", "cp2", 2, 0, "127.0.0.1"),
        ("api", "cp3", 0, 1, "127.0.0.1"),
    ]
    assert format_servers_state(rows).split() == text.split()
    assert text.splitlines()[1].split()[1:] == list(STATE_FIELDS)
    cut = "\n".join(line if line.startswith("#") else line.rpartition(" ")[0] for line in text.splitlines())
    assert format_servers_state(parse_servers_state(cut)).count("\n") == 2, "a row with fields missing would set the wrong ones"


def test_hosts_and_ports() -> None:
    assert split_address("192.0.2.1:80") == ("192.0.2.1", 80)
    assert split_address("[2001:db8::1]:80") == ("2001:db8::1", 80)
    assert split_address("2001:db8::1:80") == ("2001:db8::1", 80)
    assert split_address("unix:1") == ("unix", 1)
    assert split_address("192.0.2.1:+1000") == ("192.0.2.1", None)
    assert split_address("") == ("", None)
