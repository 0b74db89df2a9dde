from __future__ import annotations

from types import SimpleNamespace

from edgekeeper.vip.role import VipRole
from edgekeeper.vip.scene import DOUBT_EVERY_S, Scene


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


def test_each_reason_has_keepalived_reloaded_once_in_a_while_and_none_takes_the_turn_of_another() -> None:
    scene, clock, reloaded = Scene.__new__(Scene), Clock(), list[str]()
    scene.clock, scene._doubted, scene._reload = clock, {}, reloaded.append
    assert scene.doubt("nobody reads the FIFO")
    assert scene.doubt("run_dir was removed")
    assert not scene.doubt("run_dir was removed")
    clock.now += DOUBT_EVERY_S
    assert scene.doubt("run_dir was removed")
    assert reloaded == ["nobody reads the FIFO", "run_dir was removed", "run_dir was removed"]


def test_a_folder_that_was_removed_twice_within_the_pause_does_not_leave_keepalived_deaf() -> None:
    role, answers = VipRole.__new__(VipRole), [False, False, True]
    role.folder, role._unheard = "run", True
    role.supervisor = SimpleNamespace(state=SimpleNamespace(running=True))
    role.scene = SimpleNamespace(doubt=lambda _: answers.pop(0))
    for _ in range(5):
        role._have_it_looked_at()
    assert answers == []
    assert not role._unheard
