"""What a ``render`` command says of what it rendered."""

from __future__ import annotations

import pytest

from edgekeeper.cli.rendered import show
from edgekeeper.errors import UsageError
from edgekeeper.model.preview import Preview

ONE = Preview({"a.conf": "first\nsecond\n"}, "1.2", ("mind this",), None)
TWO = Preview({"a.conf": "first\n", "b.conf": "other\n"}, "1.2", (), None)


def test_files_are_printed_and_everything_else_stands_on_the_other_stream(capsys) -> None:
    show(ONE, "engine", None, asked=True)
    out, err = capsys.readouterr()
    assert out == "first\nsecond\n"
    assert err == "note: mind this\nengine 1.2 accepts it\n"


def test_several_files_have_heads(capsys) -> None:
    show(TWO, "engine", None, asked=False, heads=True)
    assert capsys.readouterr() == ("# a.conf\nfirst\n# b.conf\nother\n", "")


@pytest.mark.parametrize(
    ("credentials", "said"),
    [(False, "a.conf written to {0}\nb.conf written to {0}\n"), (True, "a.conf, b.conf written to {0} (they hold credentials: mode 0600)\n")],
)
def test_files_are_written_for_their_owner_only(tmp_path, capsys, credentials: bool, said: str) -> None:
    folder = tmp_path / "made"
    show(TWO, "engine", str(folder), asked=False, credentials=credentials)
    assert capsys.readouterr().out == said.format(folder)
    assert {p.name: (p.read_text(), p.stat().st_mode & 0o777) for p in folder.iterdir()} == {"a.conf": ("first\n", 0o600), "b.conf": ("other\n", 0o600)}


def test_a_refusal_is_an_error_after_the_files_were_shown(capsys) -> None:
    with pytest.raises(UsageError, match=r"^line 2 is wrong; nothing was changed$"):
        show(Preview({"a.conf": "first\n"}, "1.2", (), "line 2 is wrong"), "engine", None, asked=True)
    assert capsys.readouterr() == ("first\n", "")
