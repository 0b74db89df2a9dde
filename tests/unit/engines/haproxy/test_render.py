"""What is written into haproxy.cfg, read back by a small reader of words that knows nothing of how they were written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.haproxy import CASES, FEATURES, RENDERED, SEAT, configs, load_case, made, topology

from edgekeeper.config.kinds import split_host_port
from edgekeeper.engines.haproxy import render
from edgekeeper.engines.haproxy.topology import Topology
from edgekeeper.model.backend import Member

SECTIONS = ("global", "defaults", "frontend", "backend")


def words(line: str) -> list[str]:
    """The words of a line as HAProxy's manual tells (section 2.2): quotes, backslashes, a comment, a variable."""
    out: list[str] = []
    word: str | None = None
    quoted = False
    rest = iter(line)
    for char in rest:
        if char == "\\":
            following = next(rest)
            assert not quoted or following in '\\"$', "a backslash in quotes means itself before anything else"
            word = (word or "") + following
        elif char == '"':
            quoted, word = not quoted, word or ""
        elif quoted:
            assert char != "$", "a variable would be put in"
            word = (word or "") + char
        elif char == "#":
            break
        elif char in " \t":
            out += [word] if word is not None else []
            word = None
        else:
            assert char != "'", "no other quotes"
            word = (word or "") + char
    assert not quoted
    return [*out, word] if word is not None else out


def sections(text: str) -> dict[str, list[list[str]]]:
    """Section heads to their lines of words."""
    found: dict[str, list[list[str]]] = {}
    here: list[list[str]] = []
    for line in text.split("\n"):
        read = words(line)
        if not read:
            continue
        if not line.startswith(" "):
            assert read[0] in SECTIONS, f"{line!r} is no head of a section"
            assert " ".join(read) not in found
            here = found[" ".join(read)] = []
        else:
            here.append(read)
    return found


def text_of(wanted: Topology) -> str:
    return render.text(wanted, SEAT, FEATURES)


@pytest.mark.parametrize("name", CASES)
def test_the_golden_files_are_what_is_rendered(name: str, request: pytest.FixtureRequest) -> None:
    case = load_case(name)
    found = text_of(case.topology)
    if request.config.getoption("--update-golden"):
        (RENDERED / f"{name}.cfg").write_text(found, encoding="utf-8")
    else:
        assert found == case.text


def test_every_golden_file_has_its_case() -> None:
    assert {path.stem for path in RENDERED.glob("*.cfg")} == set(CASES)


@settings(max_examples=15, deadline=None)
@given(configs(), st.booleans())
def test_what_is_asked_for_is_written_and_nothing_else(config: tuple[list[dict[str, object]], list[list[Member]]], stats: bool) -> None:
    wanted = made(*config, [18001, 18002, 18003], **({"stats": "127.0.0.1:8404"} if stats else {}))
    found = sections(text_of(wanted))
    heads = ["global", "defaults"]
    for service in wanted.services:
        heads += [f"frontend {service.name}-in", *(f"backend {backend}" for backend in service.backends)]
        front = found[f"frontend {service.name}-in"]
        binds = [line for line in front if line[0] == "bind"]
        assert [line[1] for line in binds] == [bind.address for bind in service.binds]
        assert all((line[line.index("crt") + 1] if "crt" in line else None) == service.certificate for line in binds)
        assert ["default_backend", service.name] in front
        for backend in service.backends:
            lines = found[f"backend {backend}"]
            servers = [line for line in lines if line[0] == "server"]
            assert [(line[1], line[2], line[3:5]) for line in servers] == [(s.name, s.address, ["weight", str(s.weight)]) for s in service.servers]
            checked = service.check.kind != "none" and not backend.endswith("-open")
            assert all(("check" in line, "on-marked-down" in line) == (checked, checked) for line in servers)
            asked = [line for line in lines if line[:2] == ["http-check", "send"]]
            assert len(asked) == (1 if checked and service.check.kind == "http" else 0)
            for line in asked:
                said = dict(zip(line[2::2], line[3::2], strict=False))
                assert said["uri"] == service.check.path
                assert line[line.index("Host") + 1].replace("%%", "%") == service.check.host
                assert len(line) == 17
            names = {line[line.index("ca-file") + 1] for line in servers if "ca-file" in line}
            assert names <= {service.verify_ca}
    assert list(found) == [*heads, *(["frontend edgekeeper-stats"] if stats else [])]
    known = {
        "mode",
        "bind",
        "option",
        "maxconn",
        "timeout",
        "use_backend",
        "default_backend",
        "balance",
        "hash-type",
        "http-check",
        "use-server",
        "server",
        "stats",
    }
    assert {line[0] for head, lines in found.items() if head.split()[0] in ("frontend", "backend") for line in lines} <= known


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=40))
def test_a_path_with_any_character_stays_one_word(path: str) -> None:
    wanted = replace(topology(), user=path or "x")
    if any(char in path for char in "\n\r\0"):
        with pytest.raises(ValueError, match="line end"):
            text_of(wanted)
        return
    assert ["user", path or "x"] in sections(text_of(wanted))["global"]


def test_what_a_process_says_of_itself_is_a_digest_of_all_that_is_in_its_file() -> None:
    one = text_of(topology())
    said = render.description(one)
    assert said.startswith("edgekeeper-")
    assert len(said) == len("edgekeeper-") + 16
    assert text_of(topology()) == one
    others = [topology({"patience": "4s", "fail_open": True}), topology(hard_stop_after="901s"), topology(members=(Member("web-a", "192.0.2.9", 80),))]
    digests = {
        said,
        *(render.description(text_of(other)) for other in others),
        render.description(render.text(topology(), replace(SEAT, state="/x"), FEATURES)),
    }
    assert len(digests) == 5
    assert render.description("global\n    maxconn 5\n") == ""


def test_a_listener_on_all_ipv6_addresses_leaves_ipv4_alone_and_an_absent_address_can_be_listened_on() -> None:
    listens = ["127.0.0.1:1", "[::1]:1", "0.0.0.0:2", "[::]:2", "192.0.2.60:3", "[2001:db8::60]:3"]
    binds = [line for line in sections(text_of(topology({"listen": listens})))["frontend web0-in"] if line[0] == "bind"]
    assert [line[2:] for line in binds] == [[], [], [], ["v6only"], ["transparent"], ["transparent"]]
    without = render.text(topology({"listen": listens}), SEAT, replace(FEATURES, transparent=False))
    assert "transparent" not in without
    assert "transparent" not in text_of(topology({"listen": listens, "transparent": False}))


def test_who_takes_nothing_on_purpose_does_not_count_as_missing() -> None:
    members = (Member("a", "192.0.2.1", 80), Member("b", "192.0.2.2", 80), Member("c", "192.0.2.3", 80, (), 100, drain=True))
    found = sections(text_of(topology({"fail_open": True, "health": {"path": "/"}}, members=members)))
    rules = [line for line in found["frontend web0-in"] if line[0] == "use_backend"]
    assert rules == [
        ["use_backend", "web0-open", "if", "{", "nbsrv(web0)", "eq", "0", "}", "{", "nbsrv(web0-patient)", "eq", "0", "}"],
        ["use_backend", "web0-patient", "if", "{", "nbsrv(web0)", "lt", "2", "}", "{", "nbsrv(web0-patient)", "gt", "0", "}"],
    ]
    chosen = [line[1] for line in found["backend web0-patient"] if line[0] == "use-server"]
    assert chosen == ["a", "b", "a"], "a by chance, else b, else a; who is drained is never chosen"
    assert [line[1] for line in found["backend web0-patient"] if line[0] == "server"] == ["a", "b", "c"]


def test_the_address_of_every_server_is_one_that_splits_again() -> None:
    found = sections(text_of(topology(members=(Member("six", "2001:db8::1", 80), Member("", "2001:db8::2", 80)))))
    servers = [line for line in found["backend web0"] if line[0] == "server"]
    assert [split_host_port(line[2]) for line in servers] == [("2001:db8::2", 80), ("2001:db8::1", 80)]
    assert [line[1] for line in servers] == ["_2001_db8__2__80", "six"]
