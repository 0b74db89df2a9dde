from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from edgekeeper import runtime
from edgekeeper.config.dns import Engine
from edgekeeper.config.root import Root
from edgekeeper.errors import ConfigError, EdgekeeperError, LockHeldError, MissingError, Mistake, RefusedError
from edgekeeper.model.entry import Entry
from edgekeeper.model.verdict import Health, Verdict
from edgekeeper.ops.alarms import Alarms
from edgekeeper.ops.metrics import Metrics
from edgekeeper.ops.server import Voice
from edgekeeper.ops.status import RoleStatus
from edgekeeper.runtime import alone, kept_alive


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "RETRY_S", 0.0)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if true():
            return
        await asyncio.sleep(0)
    raise AssertionError


def test_a_watcher_that_fails_is_told_and_tried_again() -> None:
    told: list[str | None] = []
    failures: list[Exception] = [MissingError("the API is away"), RuntimeError("a bug with a secret")]

    async def work() -> None:
        if failures:
            raise failures.pop(0)

    asyncio.run(kept_alive("the members", work, told.append))
    assert told == [
        "the members failed: the API is away; trying again in 0 s",
        "the members failed: RuntimeError; trying again in 0 s",
        None,
    ]


def test_an_alarm_is_cleared_when_the_watcher_goes_on_again_though_it_never_ends() -> None:
    told: list[str | None] = []
    failures = [MissingError("the API is away")]

    async def work() -> None:
        if failures:
            raise failures.pop()
        await asyncio.Event().wait()

    async def watch() -> None:
        task = asyncio.create_task(kept_alive("the members", work, told.append))
        await until(lambda: told[-1:] == [None])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(watch())
    assert len(told) == 2


def test_a_watcher_that_fails_at_once_is_never_called_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "RETRY_S", 0.001)
    told: list[str | None] = []

    async def work() -> None:
        raise MissingError("away")

    async def watch() -> None:
        task = asyncio.create_task(kept_alive("the members", work, told.append))
        await until(lambda: len(told) >= 5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(watch())
    assert None not in told


def test_cancelling_ends_it() -> None:
    async def watch() -> None:
        task = asyncio.create_task(kept_alive("the members", asyncio.Event().wait, lambda _: None))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(watch())


def test_a_role_runs_once_for_each_run_dir(tmp_path: Path) -> None:
    with alone(str(tmp_path), "dns") as folder:
        assert folder == tmp_path / "dns"
        assert folder.stat().st_mode & 0o777 == 0o700
        with pytest.raises(LockHeldError, match="already running"), alone(str(tmp_path), "dns"):
            pass
        with alone(str(tmp_path), "vip"):
            pass
    with alone(str(tmp_path), "dns"):
        pass


def test_a_state_dir_has_one_master_too(tmp_path: Path) -> None:
    run, other, state = (tmp_path / name for name in ("run", "other", "state"))
    state.mkdir(mode=0o750)
    with alone(str(run), "dns", str(state)):
        assert state.stat().st_mode & 0o777 == 0o750
        with pytest.raises(LockHeldError, match=r"with state_dir .* is already running"), alone(str(other), "dns", str(state)):
            pass
    with alone(str(run), "dns", str(run)):
        pass


# roles in one process ---------------------------------------------------------------------


class Fake:
    """A role that does what it is told; ``told`` is what it was told."""

    def __init__(self, root: Root, fails: Exception | None = None) -> None:
        self.root, self.fails = root, fails
        self.told: list[str] = []
        self._end = asyncio.Event()

    def status(self) -> RoleStatus:
        well = Verdict(Health.OK, "well")
        return RoleStatus(well, well, {})

    async def run(self) -> None:
        if self.fails is not None:
            raise self.fails
        await self._end.wait()

    def end(self, *, leave: bool) -> None:
        self.told.append("leave" if leave else "stop")
        self._end.set()

    def reload(self, fresh: Root | EdgekeeperError) -> None:
        self.told.append(str(fresh) if isinstance(fresh, EdgekeeperError) else f"reload {fresh.node}")


class Yard:
    """A runtime with roles of the test; each entry of ``fails`` is what the next start of that role raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str, first: str = "", **fails: list[Exception | None]) -> None:
        self.made: dict[str, list[Fake]] = {name: [] for name in names}
        self.fails = fails
        self.roots: list[Root | EdgekeeperError] = []
        self.entries: list[Entry] = []
        self.served: list[Voice] = []
        self.first = root("a")
        posts = [runtime.Post(name, lambda fresh, name=name: self._make(name, fresh), first=name == first) for name in names]
        monkeypatch.setattr(runtime, "serve", self._serve)
        self.runtime = runtime.Runtime(posts, self.first, "edge-a", self, self, Metrics(), reread=self._reread, listen="127.0.0.1:1")  # type: ignore[arg-type]

    lost_total = 3

    def wall(self) -> float:
        return 1_800_000_000.0

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)

    async def _make(self, name: str, fresh: Root) -> Fake:
        coming = self.fails.get(name) or [None]
        fails = coming.pop(0) if len(coming) > 1 else coming[0]
        if isinstance(fails, MissingError):  # an engine that is not installed shows before there is a role
            raise fails
        self.made[name].append(Fake(fresh, fails))
        return self.made[name][-1]

    def _reread(self) -> Root:
        fresh = self.roots.pop(0)
        if isinstance(fresh, EdgekeeperError):
            raise fresh
        return fresh

    async def _serve(self, _ops: object, _listen: str, voice: Voice, _token: object) -> None:
        self.served.append(voice)
        await asyncio.Event().wait()

    def during(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run, and end it once the work is done."""

        async def both() -> None:
            task = asyncio.create_task(self.runtime.run())
            await until(lambda: bool(self.served) or task.done())
            if not task.done():
                await work()
                self.runtime.end(leave=False)
            await task

        asyncio.run(both())

    def verdicts(self) -> dict[str, str]:
        return {name: role["verdict"] for name, role in self.runtime.status()["roles"].items()}


def root(node: str) -> Root:
    dns = {"listen": ["127.0.0.1:53"], "members": {"static": ["127.0.0.1"]}}
    made = Root.model_validate({"node": node, "dns": dns})
    object.__setattr__(made, "other", made.dns)  # a second role's section
    return made


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "FIRST_PAUSE_S", 0.0)


def test_one_listener_speaks_for_all_roles_and_all_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = Yard(monkeypatch, "dns", "other")

    async def work() -> None:
        assert yard.verdicts() == {"dns": "ok", "other": "ok"}
        assert list(yard.served[0].status({"other", "nobody"})["roles"]) == ["other"]
        assert yard.served[0].ready() == (True, "dns: well; other: well")
        assert b"edgekeeper_journal_lost 3.0" in yard.served[0].metrics()

    yard.during(work)
    assert len(yard.served) == 1
    assert [role.told for made in yard.made.values() for role in made] == [["stop"], ["stop"]]


def test_a_role_that_stops_first_has_stopped_before_the_others_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = Yard(monkeypatch, "dns", "other", first="other")

    async def work() -> None:
        dns, other = yard.made["dns"][0], yard.made["other"][0]
        other.end = lambda *, leave: other.told.append("leave" if leave else "stop")  # type: ignore[method-assign] # it takes its time
        yard.runtime.end(leave=False)
        for _ in range(10):
            await asyncio.sleep(0)
        assert (other.told, dns.told) == (["stop"], [])
        other._end.set()
        await until(lambda: dns.told == ["stop"])

    yard.during(work)


def test_engines_that_are_left_are_left_by_all_at_once_and_one_that_never_stops_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = Yard(monkeypatch, "dns", "other", first="other")

    async def leave() -> None:
        yard.runtime.end(leave=True)
        assert [made[0].told for made in yard.made.values()] == [["leave"], ["leave"]]

    yard.during(leave)
    monkeypatch.setattr(runtime, "FIRST_ENDS_S", 0.0)
    slow = Yard(monkeypatch, "dns", "other", first="other")

    async def never() -> None:
        other = slow.made["other"][0]
        real, other.end = other.end, lambda *, leave: None  # type: ignore[method-assign]
        slow.runtime.end(leave=False)
        await until(lambda: slow.made["dns"][0].told == ["stop"])
        other.end = real  # type: ignore[method-assign]
        real(leave=False)

    slow.during(never)


def test_a_role_that_cannot_start_is_bad_with_its_reason_and_is_tried_again_while_the_others_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "FIRST_PAUSE_S", 0.05)
    yard = Yard(monkeypatch, "dns", "other", other=[MissingError("haproxy is not installed here"), None])

    async def work() -> None:
        assert yard.verdicts() == {"dns": "ok", "other": "bad"}
        assert not yard.runtime.ready()[0]
        why = "haproxy is not installed here; the other roles go on, this one is tried again"
        assert yard.runtime.status()["roles"]["other"]["why"] == why
        await until(lambda: yard.verdicts() == {"dns": "ok", "other": "ok"})
        await until(lambda: len(yard.entries) == 2)
        assert [(e.role, str(e.event)) for e in yard.entries] == [("other", "alarm.raised"), ("other", "alarm.cleared")]

    yard.during(work)
    assert len(yard.made["dns"]) == 1


@pytest.mark.parametrize("failure", [RefusedError("no"), RuntimeError("a bug")])
def test_a_role_that_ends_with_an_error_is_made_anew_and_told_once(monkeypatch: pytest.MonkeyPatch, no_pause: None, failure: Exception) -> None:
    yard = Yard(monkeypatch, "dns", "other", other=[failure, failure, failure, None])
    monkeypatch.setattr(runtime, "LONGEST_PAUSE_S", 0.0)

    async def work() -> None:
        await until(lambda: len(yard.made["other"]) == 4)
        assert len([e for e in yard.entries if e.decision == "alarm"]) == 1

    yard.during(work)


@pytest.mark.parametrize("failure", [MissingError("dnsdist is not installed here"), RefusedError("no")])
def test_the_error_of_a_role_that_stands_alone_ends_the_process(monkeypatch: pytest.MonkeyPatch, failure: Exception) -> None:
    yard = Yard(monkeypatch, "dns", dns=[failure])
    with pytest.raises(type(failure)):
        asyncio.run(yard.runtime.run())


def test_the_config_is_read_once_for_all_and_a_mistake_reaches_all(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = Yard(monkeypatch, "dns", "other")
    yard.roots = [root("b"), ConfigError("f", (Mistake(1, 1, "dns", "no"),))]

    async def work() -> None:
        yard.runtime.reload()
        yard.runtime.reload()

    yard.during(work)
    assert [role.told for made in yard.made.values() for role in made] == [["reload b", "f:1:1: dns: no", "stop"]] * 2


def test_nothing_is_served_before_every_role_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else who asks in the first moment is told of a role that has nothing to tell yet."""
    yard = Yard(monkeypatch, "dns", "other")
    go, make = asyncio.Event(), yard._make

    async def slow(name: str, fresh: Root) -> Fake:
        if name == "other":
            await go.wait()
        return await make(name, fresh)

    monkeypatch.setattr(yard, "_make", slow)

    async def work() -> None:
        task = asyncio.create_task(yard.runtime.run())
        await until(lambda: bool(yard.made["dns"]))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not yard.served
        go.set()
        await until(lambda: bool(yard.served))
        yard.runtime.end(leave=False)
        await task

    asyncio.run(work())


def test_a_role_that_waits_is_tried_at_once_with_the_config_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "FIRST_PAUSE_S", 600.0)
    yard = Yard(monkeypatch, "dns", "other", other=[MissingError("away"), None])
    fresh = root("b")
    yard.roots = [fresh]

    async def work() -> None:
        yard.runtime.reload()
        await until(lambda: bool(yard.made["other"]))
        assert yard.made["other"][0].root is fresh

    yard.during(work)


def test_what_waits_ends_at_once_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "FIRST_PAUSE_S", 600.0)
    yard = Yard(monkeypatch, "dns", "other", other=[MissingError("away")])

    async def work() -> None:
        assert yard.verdicts()["other"] == "bad"

    yard.during(work)


def test_what_counts_after_a_restart_only_is_named() -> None:
    before = root("a")
    after = before.model_copy(update={"run_dir": "/run/other", "dns": before.dns.model_copy(update={"engine": Engine(threads=2)})})  # type: ignore[union-attr,call-arg]
    assert runtime.restart_needed(before, after, "dns") == "changes in run_dir, dns.engine count after a restart of edgekeeper"
    assert runtime.restart_needed(before, before, "dns") is None


def test_a_config_that_a_role_cannot_take_is_told_and_the_one_before_stays() -> None:
    entries: list[Entry] = []

    class Kept:
        def write(self, entry: Entry) -> None:
            entries.append(entry)

    alarms, before = Alarms("dns", Kept()), root("a")

    def take(fresh: Root | EdgekeeperError, refusal: str | None = None) -> Root | None:
        return runtime.accepted("dns", before, fresh, alarms, Kept(), lambda _: refusal)

    mistakes = ConfigError("f", (Mistake(1, 1, "dns", "no"), Mistake(2, 1, "ops", "no")))
    for fresh, refusal, told in (
        (mistakes, None, "f:1:1: dns: no; f:2:1: ops: no"),
        (before.model_copy(update={"dns": None}), None, "no dns section any more"),
        (before, "not yet", "not yet"),
    ):
        assert take(fresh, refusal) is None
        assert told in alarms.raised["config"]
        assert entries[-1].why == alarms.raised["config"]
    assert take(before) is before
    assert not alarms.raised
