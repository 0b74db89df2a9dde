import gzip
import lzma

import pytest
from backports import zstd

from edgekeeper.errors import MissingError, UsageError
from edgekeeper.host.archive import Archive

TEXT = b"".join(b"line %d\n" % i for i in range(60_000))
PACKS = {
    "plain": bytes,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
    "two zstd": lambda data: zstd.compress(data[:9]) + zstd.compress(data[9:]),
}


@pytest.fixture(params=PACKS)
def packed(request, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(PACKS[request.param](TEXT))
    return path, request.param


def filled(archive, size=70_001):
    view = memoryview(bytearray(size))
    found = []
    while count := archive.fill(view):
        found.append(bytes(view[:count]))
    archive.close()
    return b"".join(found)


def test_it_is_read_whatever_packed_it(packed):
    path, how = packed
    archive = Archive(str(path))
    assert archive.packed == (how != "plain")
    assert archive.size == path.stat().st_size
    assert filled(archive) == TEXT
    assert b"".join(Archive(str(path)).blocks()) == TEXT
    assert archive.damage == ""


def test_what_is_cut_off_is_read_up_to_there_and_said(packed):
    path, how = packed
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    archive = Archive(str(path))
    found = filled(archive)
    assert TEXT.startswith(found)
    assert found
    assert ("cannot be read to its end" in archive.damage) == (how != "plain")


def test_it_is_read_from_the_middle(tmp_path):
    (tmp_path / "log").write_bytes(TEXT)
    archive = Archive(str(tmp_path / "log"))
    archive.seek(100_000)
    assert filled(archive) == TEXT[100_000:]


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(MissingError):
        Archive(str(tmp_path / "none"))
    with pytest.raises(UsageError, match="is not a file"):
        Archive("/dev/null")
