"""``edgekeeper expose``: what is shown of a pass, the exit codes, and words that end before anything is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.cli import expose_work
from edgekeeper.cli.main import run
from edgekeeper.errors import MissingError
from edgekeeper.expose.brake import Memory
from edgekeeper.expose.kinds import Options, Origin, Remark, Wish
from edgekeeper.expose.outcome import Outcome
from edgekeeper.expose.plan import Action, Held, Plan
from edgekeeper.expose.proof import Answer, Proof
from edgekeeper.expose.sync import Pass

ORIGIN = Origin("Ingress", "shop", "web")
OTHER = Origin("Ingress", "shop", "other")


def wish(host: str, origin: Origin = ORIGIN) -> Wish:
    return Wish(host, origin, "default", Options())


def passed(*outcomes: Outcome, held: tuple[Held, ...] = (), refused: str | None = None, steps: tuple[str, ...] = (), **more: Any) -> Pass:
    actions = tuple(one.action for one in outcomes)
    wishes = {host: wish(host, OTHER if host.startswith("o") else ORIGIN) for host in ("a.example", "b.example", "o.example")}
    remarks = (Remark(ORIGIN, "BadHost", '"x\x1b[2J" is not a host name'), Remark(OTHER, "NoHost", "it names no host"))
    return Pass(Plan(actions, held, ("b.example",), remarks, Memory(), 3, 2, 1, refused, wishes), outcomes, steps, **more)


def create(host: str = "a.example") -> Action:
    return Action("create", host, "Ingress shop/web wants it, and there is no service")


FINE = passed(Outcome(create()))
FAILED = passed(Outcome(create(), "unknown_domain", "register the domain\x1b[2J"))


class Work:
    """What the commands would do: passes that are given, and what they were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.look = self.apply = FINE
        self.proofs: list[Proof] = []
        self.names = ["a.example"]

    def looked(self, _ctx: Any, _loaded: Any, **options: Any) -> Pass:
        self.asked.append(("look", options))
        return self.look

    def applied(self, _ctx: Any, _loaded: Any, **options: Any) -> Pass:
        self.asked.append(("apply", options))
        return self.apply

    def relinquished(self, _ctx: Any, _loaded: Any, hosts: frozenset[str], *, really: bool) -> list[str]:
        self.asked.append(("relinquish", {"hosts": hosts, "really": really}))
        return self.names

    def verified(self, _ctx: Any, _loaded: Any, hosts: frozenset[str], echo: str | None) -> list[Proof]:
        self.asked.append(("verify", {"hosts": hosts, "echo": echo}))
        return self.proofs


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    made = Work()
    for name in ("looked", "applied", "relinquished", "verified"):
        monkeypatch.setattr(expose_work, name, getattr(made, name))
    return made


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    file = tmp_path / "edgekeeper.yaml"
    said = {"owner": "home", "netbird": {"url": "https://netbird.example", "token_env": "T"}, "targets": {"default": "192.0.2.1"}}
    file.write_text(json.dumps({"expose": said, "run_dir": str(tmp_path / "run"), "state_dir": str(tmp_path / "state")}))

    def made(*words: str) -> tuple[int, str, str]:
        code = run(["--config", str(file), "expose", *words])
        shown = capsys.readouterr()
        assert "\x1b" not in shown.out + shown.err
        return code, shown.out, shown.err

    return made


# plan and apply -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (passed(), 0),
        (passed(held=(Held("b.example", "conflict", "it is somebody's"),)), 0),
        (FINE, 1),
        (passed(steps=("the network edgekeeper is made",)), 1),
        (passed(refused="5 of 6 services would go"), 1),
    ],
)
def test_a_plan_ends_with_one_when_there_is_something_to_do(work, call, found, code):
    work.look = found
    assert call("plan")[0] == call("plan", "-o", "json")[0] == code
    assert work.asked[0] == ("look", {"force": False})
    call("plan", "--force")
    assert work.asked[-1] == ("look", {"force": True})


def test_a_plan_is_shown_with_its_reasons_and_nothing_in_it_moves_the_cursor(work, call):
    held = (Held("o.example", "conflict", "it is somebody's\x1b[2J"),)
    work.look = passed(
        Outcome(create()), held=held, refused="5 of 6 would go", steps=("the network edgekeeper is made",), grounds=("two networks of this name",)
    )
    code, out, err = call("plan")
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert rows[:3] == ["DO HOST WHY", "mesh the network edgekeeper is made", "create a.example Ingress shop/web wants it, and there is no service"]
    assert rows[3].startswith("held o.example it is somebody's")
    assert rows[-1] == "3 wanted, 2 managed, 1 to do, 1 held, 1 services of others"
    assert "Ingress shop/other: it names no host" in rows
    assert err.splitlines() == ["two networks of this name", "5 of 6 would go"]
    assert code == 1


def test_the_document_has_all_of_it(work, call):
    work.look = passed(Outcome(create()), held=(Held("o.example", "conflict", "x"),), steps=("step",), grounds=("ground",), lost=("target",), refused="why")
    found = json.loads(call("plan", "-o", "json")[1])
    assert found.pop("remarks")[1] == {"object": "Ingress shop/other", "reason": "NoHost", "text": "it names no host"}
    assert found == {
        "schema": 1,
        "wanted": 3,
        "managed": 2,
        "foreign": 1,
        "steps": ["step"],
        "actions": [{"kind": "create", "host": "a.example", "why": "Ingress shop/web wants it, and there is no service"}],
        "held": [{"host": "o.example", "state": "conflict", "why": "x"}],
        "failed": [],
        "mesh": ["ground"],
        "targets": ["target"],
        "refused": "why",
        "memory": None,
        "hosts": {"a.example": "active", "b.example": "active", "o.example": "conflict"},
    }


@pytest.mark.parametrize(
    ("found", "code", "told"),
    [
        (FINE, 0, ""),
        (passed(held=(Held("o.example", "conflict", "x"),)), 0, ""),
        (FAILED, 5, "1 of 1 writes were not done; do it again: what is done already stays done"),
        (passed(refused="5 of 6 would go"), 3, "deletions were refused: 5 of 6 would go"),
        (passed(Outcome(create(), "taken", "x"), refused="5 of 6 would go"), 5, "1 of 1 writes were not done"),
        (passed(held=(Held("o.example", "no-resource", "no router"),)), 5, "have nothing in the mesh to stand on: no router"),
    ],
)
def test_how_an_apply_ends(work, call, found, code, told):
    work.apply = found
    ended, out, err = call("apply")
    assert (ended, out.splitlines()[-1]) == (code, found.sentence())
    assert told in err
    assert call("apply", "-o", "json")[0] == code
    assert work.asked == [("apply", {"force": False})] * 2
    call("apply", "--force")
    assert work.asked[-1] == ("apply", {"force": True})


def test_a_write_that_failed_is_shown_as_one(work, call):
    work.apply = FAILED
    assert "create FAILED  a.example  register the domain" in call("apply")[1]
    found = json.loads(call("apply", "-o", "json")[1])
    assert [(one["host"], one["kind"]) for one in found["failed"]] == [("a.example", "unknown_domain")]


# adopt and relinquish -------------------------------------------------------------------------


def test_an_adoption_is_shown_first_and_done_only_when_it_is_asked_for(work, call):
    host = frozenset({"a.example"})
    code, out, _ = call("adopt", "A.example.")
    assert (code, work.asked) == (0, [("look", {"hosts": host, "adopt": host})])
    assert out.splitlines()[-1] == "nothing was done; --yes does it"
    code, out, _ = call("adopt", "A.example.", "--yes")
    assert (code, work.asked[1:]) == (0, [("look", {"hosts": host, "adopt": host}), ("apply", {"hosts": host, "adopt": host})])
    assert "nothing was done" not in out


def test_what_nobody_wants_cannot_be_adopted(work, call):
    code, _, err = call("adopt", "a.example", "none.example", "--yes")
    assert (code, [what for what, _ in work.asked]) == (2, ["look"])
    assert "none.example: no object wants it" in err


def test_one_that_was_not_taken_over_is_no_success_and_what_concerns_others_is_no_failure(work, call):
    work.apply = passed(Outcome(create()), held=(Held("o.example", "conflict", "x"),), refused="5 of 6 would go")
    code, out, err = call("adopt", "a.example", "--yes")
    assert (code, err) == (0, "")
    assert "o.example" not in out
    assert "Ingress shop/other" not in out
    work.apply = passed(held=(Held("a.example", "disabled", "it was switched off by hand"),))
    code, _, err = call("adopt", "a.example", "--yes")
    assert (code, err) == (3, "edgekeeper: a.example was not taken over: it was switched off by hand\n")


def test_a_mark_is_taken_off_only_when_it_is_asked_for(work, call):
    code, out, _ = call("relinquish", "A.example")
    assert (code, work.asked) == (0, [("relinquish", {"hosts": frozenset({"a.example"}), "really": False})])
    assert out.splitlines() == ["a.example: its name would be 'a.example'; it serves as before", "nothing was done; --yes does it"]
    code, out, _ = call("relinquish", "a.example", "--yes")
    assert (code, work.asked[-1][1]["really"]) == (0, True)
    assert "its name is now 'a.example'" in out


# verify ---------------------------------------------------------------------------------------

GOOD = Proof("a.example", (Answer("192.0.2.1:443", True, "", 41.0, "192.0.2.7"),))
BAD = Proof("b.example", (Answer("192.0.2.1:443", False, "the certificate is for x\x1b[2J"),))


@pytest.mark.parametrize(("proofs", "code"), [([GOOD], 0), ([GOOD, BAD], 1), ([Proof("c.example", (), "it has no address in the DNS")], 1)])
def test_a_host_that_is_not_proved_ends_with_one(work, call, proofs, code):
    work.proofs = proofs
    ended, out, _ = call("verify")
    assert (ended, work.asked) == (code, [("verify", {"hosts": frozenset(), "echo": None})])
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [[one.host, "yes" if one.ok else "no"] for one in proofs]
    found = json.loads(call("verify", "-o", "json")[1])
    assert [(one["host"], one["ok"], one["why"]) for one in found["hosts"]] == [(one.host, one.ok, one.text) for one in proofs]


def test_each_answer_is_in_the_document(work, call):
    work.proofs = [GOOD]
    found = json.loads(call("verify", "a.example", "--echo", "/whoami", "-o", "json")[1])
    assert found["hosts"][0]["answers"] == [{"address": "192.0.2.1:443", "ok": True, "why": "", "ms": 41.0, "seen": "192.0.2.7"}]
    assert work.asked == [("verify", {"hosts": frozenset({"a.example"}), "echo": "/whoami"})]


# words that end before anything is asked ------------------------------------------------------


@pytest.mark.parametrize("echo", ["whoami", "", "/a b", "/a\r\nHost: evil.example", "/\u00e4", "/a\tb"])
def test_a_path_that_would_be_another_request_is_refused(work, call, echo):
    code, _, err = call("verify", "--echo", echo)
    assert (code, work.asked) == (2, [])
    assert "is not a path; write it like /whoami" in err


@pytest.mark.parametrize("words", [["adopt"], ["relinquish"], ["verify"]])
@pytest.mark.parametrize(
    ("host", "why"), [("*.example", "wildcard"), ("a b.example", "is not a host name"), ("192.0.2.1", "is an address"), ("a\x1b[2J", "is not")]
)
def test_what_is_no_host_is_refused(work, call, words, host, why):
    code, _, err = call(*words, host)
    assert (code, work.asked) == (2, [])
    assert why in err


def test_without_the_section_it_says_how_to_get_one(tmp_path, capsys):
    (tmp_path / "edgekeeper.yaml").write_text("node: edge-a\n")
    for words in (["plan"], ["apply"], ["run"], ["adopt", "a.example"], ["relinquish", "a.example"], ["verify"]):
        assert run(["--config", str(tmp_path / "edgekeeper.yaml"), "expose", *words]) == 2
        assert "has no expose section" in capsys.readouterr().err


def test_a_mesh_that_is_away_is_told_in_one_line(work, call, monkeypatch):
    def away(*_: Any, **__: Any) -> Pass:
        msg = "services cannot be listed: nobody answers; what is published stays"
        raise MissingError(msg)

    monkeypatch.setattr(expose_work, "looked", away)
    assert call("plan") == (6, "", "edgekeeper: services cannot be listed: nobody answers; what is published stays\n")
