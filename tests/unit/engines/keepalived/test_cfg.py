from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.engines.keepalived.cfg import hosts, looks_like, read
from edgekeeper.engines.keepalived.cfg_section import MOST_LINES, includes
from edgekeeper.engines.keepalived.cfg_values import Host, Included, Instance, Script, Source

BASE = """\
global_defs {
    script_user root
    vrrp_version 3
}
vrrp_script chk
{
    script "/usr/bin/check -a 'b c'"
    interval 2
    fall 3
    weight -20 reverse
}
vrrp_instance VI_1 {
    interface eth0   ! the inner one
    virtual_router_id 51
    priority 300
    advert_int 0.25
    track_script { chk weight 5 }
    unicast_src_ip 192.0.2.11
    unicast_peer {
        192.0.2.12
        192.0.2.13
    }
    virtual_ipaddress { 192.0.2.53/24 dev eth1
        2001:db8::53/64
    }
    authentication {
        auth_pass secret-word
    }
}
"""


def one(text: str, **more: object) -> Host:
    return read(Source("k.conf", text), **more)  # type: ignore[arg-type]


def instance(text: str) -> Instance:
    (found,) = one(text).instances
    return found


def test_what_is_said_comes_with_its_line_and_the_rest_is_what_keepalived_takes() -> None:
    host = one(BASE)
    script, found = host.scripts["chk"], host.instances[0]
    assert (script.argv[0], script.interval_s, script.timeout_s, script.limit_s, script.fall, script.rise) == ("/usr/bin/check", 2, None, 2, 3, 1)
    assert (script.weight, script.reverse, script.at("interval").line, script.place.line) == (-20, True, 8, 5)
    assert (found.vrid, found.interface, found.priority, found.advert_s, found.version) == (51, "eth0", 100, 0.25, 3)
    assert [(peer.ip, peer.place.line) for peer in found.peers] == [("192.0.2.12", 20), ("192.0.2.13", 21)]
    assert (found.family, found.own_vips, found.vips[0].dev) == (4, {"192.0.2.53"}, "eth1")
    assert (found.tracked[0].name, found.tracked[0].weight, found.state) == ("chk", 5, "BACKUP")
    assert (found.auth, found.pass_length) == ("PASS", 11)
    assert "secret-word" not in repr(host)
    assert host.problems == ()


def test_numbers_that_keepalived_does_not_take_become_its_defaults() -> None:
    text = "vrrp_script s {\n interval 0\n timeout x\n fall 0\n weight 9x\n}\nvrrp_instance I {\n virtual_router_id 300\n advert_int 1.5\n version 2\n}\n"
    host = one(text)
    script = host.scripts["s"]
    assert (script.interval_s, script.timeout_s, script.fall, script.weight) == (1, None, 1, 0)
    assert (host.instances[0].vrid, host.instances[0].advert_s, host.instances[0].advert_said_s) == (None, 2, 1.5)


def test_state_and_priority_follow_from_each_other() -> None:
    assert instance("vrrp_instance I {\n state MASTER\n}").priority == 255
    assert instance("vrrp_instance I {\n priority 255\n}").state == "MASTER"
    assert instance("vrrp_instance I {\n state MASTER\n state BACKUP\n}").state == "MASTER"
    assert instance("vrrp_instance I {\n virtual_ipaddress {\n  2001:db8::1\n }\n}").version == 3


def test_a_file_for_several_hosts_is_read_as_each_of_them() -> None:
    text = "@a $P=110\n@b $P=100\nvrrp_instance I {\n priority $P\n @a nopreempt\n @^a preempt_delay 5\n}\n"
    assert [(h.name, h.instances[0].priority, h.instances[0].nopreempt, h.instances[0].preempt_delay_s) for h in hosts(Source("k", text))] == [
        ("k (@a)", 110, True, 0),
        ("k (@b)", 100, False, 5),
    ]
    alone = hosts(Source("k", "vrrp_instance I {\n @main priority 110\n}\n"))
    assert [(h.name, h.instances[0].priority) for h in alone] == [("k (@main)", 110), ("k (others)", 100)]


def test_definitions_of_several_lines_and_sequences() -> None:
    text = "$VI= \\\n vrrp_instance V${N} { \\\n  virtual_router_id ${N} \\\n }\n\n~SEQ(N, 1, 2, 5) $VI\n~LST(N, 7, 9) $VI\n~SEQx(N, 16) x${N}\n~SEQ(N 1) y\n"
    host = one(text)
    assert [(i.name, i.vrid) for i in host.instances] == [("V1", 1), ("V3", 3), ("V5", 5), ("V7", 7), ("V9", 9)]
    assert [(p.place.line, p.text.split(";")[0]) for p in host.problems] == [(9, "this sequence was not understood")]


def test_included_files_count_where_they_are_included() -> None:
    inner = Source("inner.conf", "vrrp_instance B {\n}\n")
    text = "vrrp_instance A {\n}\ninclude conf.d/*.conf\ninclude gone.conf\nvrrp_instance C {\n}\n"
    assert list(includes(text)) == [(3, "include", "conf.d/*.conf"), (4, "include", "gone.conf")]
    host = read(Source("k.conf", text, {3: Included((inner,)), 4: Included(why="gone")}))
    assert [(i.name, i.place.text()) for i in host.instances] == [("A", "k.conf:1"), ("B", "inner.conf:1"), ("C", "k.conf:5")]
    assert host.files == ("k.conf", "inner.conf")
    assert [(p.place.text(), p.text) for p in host.problems] == [("k.conf:4", "gone")]


def test_braces_that_do_not_match_are_told_where_they_begin() -> None:
    assert [(p.place.line, p.severe) for p in one("global_defs {\n router_id x\nvrrp_instance A {\n}\n").problems] == [(1, True)]
    assert [p.place.line for p in one("global_defs {\n}\n}\n").problems] == [3]


def test_groups_and_what_they_track() -> None:
    text = "vrrp_sync_group G {\n group {\n  A\n  B C\n }\n track_script {\n  s\n }\n}\nvrrp_instance B {\n track_file {\n  f weight 2 reverse\n }\n}\n"
    host = one(text)
    assert host.groups[0].members == ("A", "B", "C")
    assert [(t.kind, t.name, t.weight, t.reverse) for t in host.tracked(host.instances[0])] == [("file", "f", 2, True), ("script", "s", None, None)]


_PIECES = st.sampled_from(
    ["{", "}", "\n", '"', "'", "\\", "#", "!", "@a ", "@^b ", "$X=", "$X", "${X}", "\\\n", "~SEQ(X,1,3) ", "~LST(X,a,b) ", "include x", " ", "vrrp_instance ",
     "vrrp_script ", "priority ", "virtual_ipaddress ", "track_script ", "weight ", "advert_int ", "group ", "auth_pass ", "9" * 12, "-1", "1.5", "\0", "::"]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(_PIECES | st.text(max_size=4), max_size=60).map("".join))
def test_nothing_in_a_text_raises(text: str) -> None:
    looks_like(text)
    for host in hosts(Source("f", text, {2: Included((Source("g", text),))})):
        repr(host)


def test_a_text_cannot_ask_for_more_than_the_limit() -> None:
    for text in ("$A=${A}${A}\n" * 2 + "$A\n", "{" * 5000 + "}" * 5000, "$A=\\\n$A\n$A\n", "${B}\n" * 9):
        assert len(one(text).instances) == 0
    told = one("~SEQ(X, 1, 999999999) x\n").problems
    assert [f"{MOST_LINES} lines" in p.text for p in told] == [True]


_NAME = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,5}", fullmatch=True)
_SCRIPT = st.tuples(_NAME, st.integers(1, 60), st.integers(1, 9), st.integers(-250, 250))
_IP = st.integers(1, 254).map(lambda n: f"192.0.2.{n}")


def render(scripts: list[tuple[str, int, int, int]], vips: list[str], priority: int, vrid: int, *, beside: bool) -> str:
    """A configuration in one of the two styles that people write braces in."""
    opening = " {\n" if beside else "\n{\n"
    out = [
        f'vrrp_script {name}{opening} script "/x {name}" # x\n interval {every}\n fall {fall}\n weight {weight}\n}}\n' for name, every, fall, weight in scripts
    ]
    tracks = " ".join(["track_script", "{", *scripts[0][:1], "}"]) if scripts else ""
    addresses = f"virtual_ipaddress{opening}" + "\n".join(vips) + "\n}"
    return "".join(out) + f"vrrp_instance I{opening}priority {priority}\nvirtual_router_id {vrid}\n{addresses}\n{tracks}\n}}\n"


@settings(max_examples=25, deadline=None)
@given(st.lists(_SCRIPT, max_size=3, unique_by=lambda s: s[0]), st.lists(_IP, max_size=4), st.integers(1, 254), st.integers(1, 255), st.booleans())
def test_what_is_written_is_read(scripts: list[tuple[str, int, int, int]], vips: list[str], priority: int, vrid: int, beside: bool) -> None:
    host = one(render(scripts, vips, priority, vrid, beside=beside))
    assert [(s.name, s.interval_s, s.fall, s.weight) for s in host.scripts.values()] == scripts
    assert all(isinstance(s, Script) and s.argv == ("/x", s.name) for s in host.scripts.values())
    found = host.instances[0]
    assert ([a.text for a in found.vips], found.priority, found.vrid, host.problems) == (vips, priority, vrid, ())
    assert [t.name for t in found.tracked] == [s[0] for s in scripts[:1]]
