from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgekeeper.errors import StepFailedError
from edgekeeper.supervise import stage as unit
from edgekeeper.supervise.stage import KEPT, Generation, Stage, files_digest

FILES = {"engine.conf": "listen\n", "engine.lua": "-- x\n"}


def write(stage: Stage, digest: str = "aaaaaaaa1111", files: dict[str, str] | None = None, now: float = 5.0) -> Generation:
    return stage.write(digest, json.dumps({"intent": digest}), files or FILES, now)


def full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "dns")


def test_a_generation_is_whole_private_and_read_back(stage: Stage) -> None:
    made = write(stage)
    assert made.name == "000001-aaaaaaaa"
    folder = stage.path(made.name)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {p.name: p.stat().st_mode & 0o777 for p in folder.iterdir()} == dict.fromkeys(("engine.conf", "engine.lua", "generation.json"), 0o600)
    assert stage.read(made.name) == made
    assert stage.current() is None
    assert stage.linked() is None


def test_one_rename_makes_it_current_and_the_one_before_stays_as_prev(stage: Stage) -> None:
    first, second = write(stage), write(stage, "bbbbbbbb2222")
    stage.swap(first.name)
    stage.swap(second.name)
    assert stage.current() == second
    assert str((stage.folder / "current").readlink()) == "generations/000002-bbbbbbbb"
    assert str((stage.folder / "prev").readlink()) == "generations/000001-aaaaaaaa"
    stage.swap(second.name)
    assert str((stage.folder / "prev").readlink()) == "generations/000001-aaaaaaaa"


def spoil(folder: Path, how: str) -> None:
    match how:
        case "file changed":
            (folder / "engine.conf").write_text("other")
        case "file missing":
            (folder / "engine.lua").unlink()
        case "file added":
            (folder / "extra.lua").write_text("x")
        case "record missing":
            (folder / "generation.json").unlink()
        case "record torn":
            (folder / "generation.json").write_text('{"schema": 1, "dig')
        case "record foreign":
            (folder / "generation.json").write_text("[]")
        case "newer schema":
            record = json.loads((folder / "generation.json").read_text())
            (folder / "generation.json").write_text(json.dumps({**record, "schema": 2}))


@pytest.mark.parametrize("how", ["file changed", "file missing", "file added", "record missing", "record torn", "record foreign", "newer schema"])
def test_files_that_do_not_belong_together_are_no_generation_and_the_one_before_counts(stage: Stage, how: str) -> None:
    first, second = write(stage), write(stage, "bbbbbbbb2222")
    stage.swap(first.name)
    stage.swap(second.name)
    spoil(stage.path(second.name), how)
    assert stage.read(second.name) is None
    assert stage.current() == first
    assert stage.linked() == second.name


@pytest.mark.parametrize("step", ["write_text", "sync_folder"])
def test_a_full_disk_leaves_no_half_generation_and_the_current_one(stage: Stage, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    first = write(stage)
    stage.swap(first.name)
    monkeypatch.setattr(unit, step, full)
    with pytest.raises(StepFailedError, match=r"generation 000002-bbbbbbbb cannot be written: .*No space left.*; the current one stays"):
        write(stage, "bbbbbbbb2222")
    assert stage.current() == first
    assert not list((stage.folder / "generations").glob(".new-*"))


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_swap_that_fails_at_either_link_keeps_the_current_one(stage: Stage, monkeypatch: pytest.MonkeyPatch, fails_at: int) -> None:
    first, second = write(stage), write(stage, "bbbbbbbb2222")
    stage.swap(first.name)
    calls: list[int] = []
    real = unit.point

    def point(link: Path, target: str) -> None:
        calls.append(1)
        if len(calls) == fails_at:
            full()
        real(link, target)

    monkeypatch.setattr(unit, "point", point)
    with pytest.raises(StepFailedError, match="cannot be made current: No space left on device; the one before stays"):
        stage.swap(second.name)
    assert stage.current() == first


def test_what_a_crash_left_half_written_is_removed_at_the_next_start(stage: Stage) -> None:
    made = write(stage)
    left = stage.folder / "generations" / ".new-000002-x"
    left.mkdir()
    (left / "engine.conf").write_text("half")
    Stage(stage.folder, readonly=True)
    assert left.exists()
    again = Stage(stage.folder)
    assert not left.exists()
    assert again.read(made.name) == made


def test_the_newest_undamaged_one_of_a_digest_is_found(stage: Stage) -> None:
    made = [write(stage), write(stage), write(stage, "aaaaaaaa9999")]
    assert stage.latest("aaaaaaaa1111") == made[1]
    spoil(stage.path(made[1].name), "file changed")
    assert stage.latest("aaaaaaaa1111") == made[0]
    assert stage.latest("cccccccc3333") is None


def test_old_ones_are_removed_but_never_one_that_is_used(stage: Stage) -> None:
    made = [write(stage, f"{i:08d}xxxx") for i in range(KEPT + 4)]
    stage.swap(made[0].name)
    stage.swap(made[1].name)
    stage.prune({made[2].name})
    left = sorted(p.name for p in (stage.folder / "generations").iterdir())
    assert left == [m.name for m in (*made[:3], *made[-KEPT:])]


def test_what_somebody_else_put_there_is_left_alone(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # many generations, and no power cut
    for name in ("0-notes", "12345678-x", "backup", "000001-UPPER_"):
        (stage.folder / "generations" / name).mkdir()
    assert write(stage).name == "000001-aaaaaaaa"
    for _ in range(KEPT + 2):
        write(stage)
    stage.prune(set())
    assert (stage.folder / "generations" / "0-notes").exists()


def test_a_copy_in_place_of_a_link_as_a_backup_makes_it_is_moved_aside(stage: Stage) -> None:
    first = write(stage)
    stage.swap(first.name)
    for link in ("current", "prev"):
        (stage.folder / link).unlink(missing_ok=True)
        (stage.folder / link).mkdir()
    second = write(stage)
    stage.swap(second.name)
    assert stage.linked() == second.name
    assert (stage.folder / f"current.before-{second.name}").is_dir()


def test_a_refused_candidate_is_dropped_and_its_number_may_come_again(stage: Stage) -> None:
    made = write(stage)
    stage.drop(made.name)
    assert stage.read(made.name) is None
    stage.drop(made.name)


def test_the_digest_is_of_names_and_bytes() -> None:
    assert files_digest({"a": "b", "c": "d"}) == files_digest({"c": "d", "a": "b"})
    assert len({files_digest(f) for f in ({"a": "bc"}, {"ab": "c"}, {"a": "b", "c": ""}, {"a": "b"}, {})}) == 5
