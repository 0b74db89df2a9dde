from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.errors import StepFailedError
from edgekeeper.lb.decide import Mark
from edgekeeper.lb.marks import NAME, read_marks, write_marks

MARKS = {("api", "cp1"): Mark(1_700_000_000.5, 4711, True, "gave no byte"), ("api", "cp2"): Mark(1.0, 0, False, "x")}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    assert read_marks(tmp_path) == {}
    write_marks(tmp_path, MARKS)
    assert read_marks(tmp_path) == MARKS
    write_marks(tmp_path, {})
    assert read_marks(tmp_path) == {}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", '{"schema": 2, "marks": []}', '{"schema": 1, "marks": [{"backend": "b"}]}', '{"schema": 1, "marks": 7}']
)
def test_a_file_that_is_not_ours_is_told_and_never_taken_for_no_marks(text: str, tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(StepFailedError, match="is not a file of marks"):
        read_marks(tmp_path)


@settings(max_examples=30)
@given(st.data())
def test_a_torn_file_is_told(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("marks")
    write_marks(folder, MARKS)
    whole = (folder / NAME).read_text().rstrip()
    (folder / NAME).write_text(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(StepFailedError):
        read_marks(folder)
