import pytest

from edgekeeper.errors import MissingError, UsageError
from edgekeeper.report.ingest.files import expand, names, stem
from edgekeeper.report.ingest.zones import Local, zone_of


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/var/log/access.log", "access.log"),
        ("/var/log/access.log.1", "access.log"),
        ("/var/log/access.log.12.gz", "access.log"),
        ("access.log-20260907.zst", "access.log"),
        ("access-2026-09-07.log", "access-2026-09-07.log"),
        ("traefik.log.2026-09-07T10", "traefik.log"),
        ("-", "stdin"),
        ("1", "1"),
        ("7.gz", "7"),
    ],
)
def test_a_rotated_set_has_one_name(path, name):
    assert stem(path) == name


def test_files_of_the_same_name_in_several_folders_are_told_apart():
    assert names(["a/gw-1/log", "a/gw-2/log", "a/gw-2/log.1", "x/y"]) == ["gw-1/log", "gw-2/log", "gw-2/log", "y"]
    assert names(["a/logs/x.log", "b/logs/x.log"]) == ["a/logs/x.log", "b/logs/x.log"]
    assert len(set(names(["x.log", "b/x.log"]))) == 2


def test_folders_and_patterns(tmp_path):
    for name in ("b.log", "a.log", "a.log.1", ".hidden", "page.html", "deep/c.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [path.removeprefix(f"{tmp_path}/") for path in expand([str(tmp_path)])]
    assert found == ["a.log", "a.log.1", "b.log", "deep/c.log"]
    assert len(expand([f"{tmp_path}/a.log*", f"{tmp_path}/a.log", "-"])) == 3
    for word in (f"{tmp_path}/none", f"{tmp_path}/none*"):
        with pytest.raises(MissingError, match="does not exist"):
            expand([word])
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingError, match="has no logs"):
        expand([str(tmp_path / "empty")])


def test_zones():
    at = (2026, 9, 7, 6, 55, 10.5)
    assert Local(zone_of("Europe/Berlin"))(*at) == Local(zone_of("+02:00"))(*at) == Local(zone_of("UTC"))(*at) - 7200 == 1788756910.5
    for wrong in ("Mars/Base", "+99:00", "../etc/passwd", "\0"):
        with pytest.raises(UsageError, match="is no time zone"):
            zone_of(wrong)
