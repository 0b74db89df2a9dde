from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.config.load import find, load, parse, select_node
from edgekeeper.config.root import RESERVED, Root
from edgekeeper.config.yamltext import decode
from edgekeeper.errors import ConfigError, UsageError

GOOD = """\
node: edge-a
dns:
  listen: ["127.0.0.1:5300"]
  members: {static: [ns-a=192.0.2.21:5353, ns-b=192.0.2.22]}
  proxy_protocol: off
"""

# Every section with a mistake; the expected places are read off this text by a person.
WRONG = """\
node: "bad name"
nodes:
  edge-a: {addres: 192.0.2.11}
run_dir: 5
ops:
  listen: 127.0.0.1
  tokn_file: /etc/token
dns:
  listen: ["0.0.0.0:53", "x:53"]
  acl: 192.0.2.0/24
  members:
    static:
      - a=b=c:99999
      - {name: ns-b}
  proxy_protocol: {secret_fil: x}
  health: {fall: "2", interval: 100ms}
  zones:
    poll: {url: "ftp://x"}
  tls: {doh: ["0.0.0.0:443"]}
  dynblocks: {window: 5}
  ebpf: {ipv4: 0}
  engine: {renderer: json}
  forward: {lan: 5}
roll: {interface: eth0}
probe: {targets: [x], every: 0s}
dsn: {}
"""

EXPECTED = """\
edge.yaml:1:7: node: 'bad name' is not a node name (letters, digits, '.', '-', '_'; at most 63)
edge.yaml:3:3: nodes.edge-a.address: missing; address of the node
edge.yaml:3:12: nodes.edge-a.addres: unknown key; did you mean address?
edge.yaml:4:10: run_dir: 5 is not text; put it in quotes
edge.yaml:6:11: ops.listen: '127.0.0.1' has no port; write 127.0.0.1:PORT, or [2001:db8::1]:PORT for IPv6
edge.yaml:7:3: ops.tokn_file: unknown key; did you mean token_file?
edge.yaml:9:26: dns.listen.1: 'x' is not an address; a listener needs one, 0.0.0.0 or [::] for all
edge.yaml:10:8: dns.acl: '192.0.2.0/24' is not a list; put it in brackets: [...]
edge.yaml:13:9: dns.members.static.0: '99999' is not a port (1 to 65535)
edge.yaml:14:9: dns.members.static.1.host: missing; address or host name; host names are resolved and watched
edge.yaml:15:20: dns.proxy_protocol.secret_fil: unknown key; did you mean secret_file?
edge.yaml:16:18: dns.health.fall: '2' is not a whole number; write it without quotes
edge.yaml:16:33: dns.health.interval: '100ms' is too small; at least 1s
edge.yaml:18:17: dns.zones.poll.url: 'ftp://x' does not have the form http://... or https://... with {member} in it
edge.yaml:19:8: dns.tls: encrypted listeners need `dir`, the folder with the certificate and key
edge.yaml:20:23: dns.dynblocks.window: 5 has no unit; write 5s or 5ms
edge.yaml:21:16: dns.ebpf.ipv4: 0 is too small; at least 1
edge.yaml:22:22: dns.engine.renderer: 'json' is not one of auto, yaml, lua
edge.yaml:23:18: dns.forward.lan: 5 is not a list; put it in brackets: [...]
edge.yaml:24:1: roll: known, but this version cannot run it; remove the section
edge.yaml:25:19: probe.targets.0: 'x' does not have the form of a URL: tls://HOST:PORT?sni=NAME, https://HOST/PATH, tcp://HOST:PORT, dns://SERVER/NAME?type=A or (probe only) icmp://HOST
edge.yaml:25:30: probe.every: '0s' is too small; at least 50ms
edge.yaml:26:1: dsn: unknown key; did you mean dns?"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, "edge.yaml")
    return str(caught.value).splitlines()


def test_a_mistake_in_every_section_is_told_at_once_with_line_and_column() -> None:
    assert mistakes(WRONG) == EXPECTED.splitlines()


def test_a_good_config_is_a_frozen_root() -> None:
    loaded = parse(GOOD, "edge.yaml")
    assert loaded.root.dns is not None
    assert [member.host for member in loaded.root.dns.members.static or ()] == ["192.0.2.21", "192.0.2.22"]
    assert loaded.positions.place(("dns", "listen")).line == 3
    with pytest.raises(ValueError, match="frozen"):
        loaded.root.node = "other"  # type: ignore[misc]


@pytest.mark.parametrize("section", RESERVED)
def test_a_section_of_a_later_version_is_named_as_such(section: str) -> None:
    assert mistakes(f"{GOOD}{section}: {{}}\n") == [f"edge.yaml:6:1: {section}: known, but this version cannot run it; remove the section"]


def test_rules_of_the_sections_that_are_right_are_told_beside_the_mistakes_of_others() -> None:
    text = GOOD.replace("proxy_protocol: off", "acl: [0.0.0.0/0]").replace("127.0.0.1:5300", "0.0.0.0:53") + "probe: {targets: [icmp://192.0.2.1], x: 1}\n"
    assert mistakes(text) == [
        (
            "edge.yaml:2:1: dns.proxy_protocol: member ns-a is not on loopback; say off, plain or {secret_file: ...}, "
            "because a member that expects the other answers nothing"
        ),
        "edge.yaml:5:8: dns.acl: 0.0.0.0/0 with the listener 0.0.0.0:53 is an open resolver; narrow the acl, or say open_resolver: true",
        "edge.yaml:6:38: probe.x: unknown key; known here: targets, every, timeout, warm, mark, alarm, record",
    ]


def test_two_members_of_one_name_or_address_stand_where_the_second_is() -> None:
    found = mistakes(GOOD.replace("ns-b=192.0.2.22", "ns-a=192.0.2.21"))
    assert found == [
        "edge.yaml:4:44: dns.members.static.1: the address 192.0.2.21:5353 is taken by another member",
        "edge.yaml:4:44: dns.members.static.1: the name ns-a is taken by another member",
    ]


def test_one_zone_in_two_spellings_is_not_merged_silently() -> None:
    found = mistakes(GOOD + "  forward: {lan.example: [192.0.2.1], LAN.example.: [192.0.2.2]}\n")
    assert found == ["edge.yaml:6:53: dns.forward.LAN.example.: the zone LAN.example. is lan.example in another spelling; remove one"]


def test_a_list_of_wrong_items_is_not_called_empty_too() -> None:
    assert len(mistakes(GOOD.replace("127.0.0.1:5300", "x"))) == 1
    assert "the list is empty" in mistakes(GOOD.replace('"127.0.0.1:5300"', ""))[0]


def test_proxy_protocol_is_one_line_and_a_secret_that_was_put_there_is_not_repeated() -> None:
    found = mistakes(GOOD.replace("off", "my-very-secret-value"))
    assert found == ["edge.yaml:5:19: dns.proxy_protocol: the value is not one of off, plain or a mapping with secret_file, secret_env"]
    assert len(mistakes(GOOD.replace("off", "[1]"))) == 1
    assert mistakes(GOOD.replace("off", "{secret_file: a, secret_env: B}")) == [
        "edge.yaml:5:19: dns.proxy_protocol: give exactly one of secret_file and secret_env"
    ]


def test_yaml_1_2_keeps_off_and_on_text_and_says_how_a_boolean_is_written() -> None:
    loaded = parse(GOOD + "  retry: off\n", "edge.yaml")
    assert loaded.root.dns is not None
    assert loaded.root.dns.retry == "off"
    assert mistakes(GOOD + "  open_resolver: yes\n") == ["edge.yaml:6:18: dns.open_resolver: 'yes' is not true or false; write true"]


def test_names_with_control_characters_are_refused_and_written_out() -> None:
    found = mistakes('node: "a\\e[31m\\nnode: b"\n"k\\e]0;x\\a": 1\n')
    assert all("\x1b" not in line and "\x07" not in line for line in found)
    assert len(found) == 2
    assert "\\x1b[31m\\nnode: b" in found[0]


@pytest.mark.parametrize(
    "value",
    ['"a\'b"', '"a\\"b"', '"a\\nb"', '"a b"', '"a;b"', '"$(x)"', '"../a"', '""', '"-a"', '"a\\u202e"', '"\uff41"'],
)
def test_a_node_name_cannot_carry_anything_into_a_file_or_command(value: str) -> None:
    assert mistakes(GOOD.replace("edge-a", value))[0].startswith("edge.yaml:1:7: node: ")


@pytest.mark.parametrize("value", ["a b", "a'b", 'a"b', "a;b", "a\nb", "$(x)", "fe80::1%a;x", "fe80::1%a\nb", 'fe80::1%"', "1.2.3", "::1::"])
def test_a_members_host_cannot_carry_anything_into_a_file_or_command(value: str) -> None:
    assert mistakes(GOOD.replace("ns-b=192.0.2.22", json.dumps({"host": value})))[0].startswith("edge.yaml:4:")


@pytest.mark.parametrize("value", ['a"b', "a'b", "a b", "a\nb", "a\\", "", "a..b", "x" * 64])
def test_a_zone_cannot_leave_its_quotes(value: str) -> None:
    assert mistakes(GOOD + f"  zones: {{static: [{json.dumps(value)}]}}\n")[0].startswith("edge.yaml:6:20: dns.zones.static.0: ")


@pytest.mark.parametrize("value", ["../key", "a/b", "a b", "a\nb", ".hidden", ""])
def test_a_certificates_file_name_stays_in_its_folder(value: str) -> None:
    assert mistakes(GOOD + f"  tls: {{dir: /tls, key: {json.dumps(value)}}}\n")[0].startswith("edge.yaml:6:")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"", "1:1: the file is empty"),
        (b"# only a comment\n", "1:1: the file is empty"),
        (b"- a\n", "1:1: a config is a mapping"),
        (b"node: a\nb\xff: c\n", "2:2: byte 0xff is not UTF-8"),
        (b"node: a\x00b\n", "1:8: control character \\x00"),
        (b"dns:\n\tlisten: x\n", "2:1: a tab in the indentation"),
        (b"a: b: c\n", "1:5: a colon where no key can be"),
        (b"a: [1\n", "close the bracket"),
        (b"node: a\n---\nnode: b\n", "2:1: a second document"),
        (b"%YAML 1.1\n---\nnode: a\n", "1:1: a YAML directive"),
        (b"node: a\nnode: b\n", "2:1: node: the key is given twice, first in line 1"),
        (b"node: !!python/object:os.system a\n", "1:7: node: the tag"),
        (b"a: &x [*x]\n", "nested too deeply"),
        (b"[" * 1000, "nested too deeply"),
        (b"dns: &a {listen: x}\n<<: *a\n", "2:1: merge keys"),
        (b"? [a]\n: b\n", "1:3: a key must be text"),
        (b"x" * (2**18 + 1), "larger than 256 KiB"),
    ],
)
def test_what_is_no_config_is_refused_politely_with_its_place(tmp_path, text: bytes, what: str) -> None:
    path = tmp_path / "edge.yaml"
    path.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert what in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_aliases_that_multiply_are_stopped_early() -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 9))
    assert "more than 50000 values" in mistakes(f"l0: &l0 [x]\n{levels}\n")[0]


@pytest.mark.parametrize("kind", ["folder", "fifo", "missing", "nul"])
def test_what_is_no_file_is_said_without_waiting(tmp_path, kind: str) -> None:
    path = str(tmp_path / "edge.yaml") + ("\0" if kind == "nul" else "")
    if kind == "folder":
        Path(path).mkdir()
    if kind == "fifo":
        os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"is not a file|cannot be read"):
        load(path)


def test_the_config_is_found_in_its_order(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgekeeper.config.load.PLACES", ("edgekeeper.yaml", str(tmp_path / "etc.yaml")))
    with pytest.raises(UsageError, match="edgekeeper init"):
        find(None)
    (tmp_path / "etc.yaml").touch()
    assert find(None) == tmp_path / "etc.yaml"
    (tmp_path / "edgekeeper.yaml").touch()
    assert find(None) == Path("edgekeeper.yaml")
    assert find("other.yaml") == Path("other.yaml")


def test_the_node_is_selected_by_option_config_or_host_name() -> None:
    two = Root.model_validate({"nodes": {"edge-a": {"address": "192.0.2.1"}, "edge-b": {"address": "192.0.2.2"}}})
    assert select_node(two, "edge-b", "edge-a") == "edge-b"
    assert select_node(two, None, "edge-a.example.") == "edge-a"
    assert select_node(Root(node="edge-c"), None, "x") == "edge-c"
    assert select_node(Root(), None, "host.example") == "host.example"
    for option, host in (("edge-x", "edge-a"), ("a b", "edge-a"), (None, "edge-x")):
        with pytest.raises(UsageError):
            select_node(two, option, host)
    with pytest.raises(UsageError, match="cannot be a node's name"):
        select_node(Root(), None, "-\x1b-")


def refusal(text: str) -> ConfigError | None:
    """Why a text is no config; None when it is one, and any other error is the test's."""
    try:
        parse(text, "edge.yaml")
    except ConfigError as err:
        return err
    return None


WORDS = st.sampled_from(["dns", "listen", "members", "static", "acl", "health", "ops", "nodes", "a", "192.0.2.1:53", "off", "1s", "*a", "&a", "!x", "<<", "''"])
YAMLISH = st.lists(WORDS | st.sampled_from([": ", ":\n  ", "- ", "\n", "[", "]", "{", "}", ", ", "#", "|\n", "\t", "? "]), max_size=30).map("".join)


@settings(max_examples=120, deadline=None)
@given(YAMLISH | st.text(max_size=80))
def test_no_text_makes_anything_but_a_config_or_a_config_error(text: str) -> None:
    assert all(line.isprintable() for line in str(refusal(text) or "").split("\n"))


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(st.sampled_from([*Root.model_fields, "listen", "static", "members", "name", "acl", "proxy_protocol", "x"]), below, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=75, deadline=None)
@given(TREES)
def test_no_tree_makes_anything_but_a_config_or_mistakes_with_places_inside_the_file(tree: object) -> None:
    text = json.dumps(tree, indent=1)
    rows = text.split("\n")
    err = refusal(text)
    for mistake in err.mistakes if err else ():
        assert not mistake.line or 1 <= mistake.column <= len(rows[mistake.line - 1]) + 1


@settings(max_examples=60, deadline=None)
@given(raw=st.binary(max_size=60))
def test_no_bytes_make_anything_but_a_config_or_a_config_error(raw: bytes) -> None:
    with contextlib.suppress(ConfigError):
        parse(decode(raw, "edge.yaml"), "edge.yaml")
