"""A line of JSON, read into a type, and why it could not be. Pure."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from edgekeeper.report import kinds
from edgekeeper.report.kinds import Skip

T = TypeVar("T")


def decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T | Skip:
    """The value of the line; a ``Skip`` with the reason when it is none."""
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:  # a validation error is a decode error
        return why(line, error)


def why(line: bytes, error: Exception) -> Skip:
    """The reason that a decoder gave, as one of ``REASONS``."""
    text = str(error)
    if not line.lstrip().startswith(b"{"):
        return Skip(kinds.NOT_TEXT if _binary(line) else kinds.NOT_THIS_FORMAT)
    if isinstance(error, msgspec.ValidationError):
        return Skip(kinds.MISSING_FIELD if "missing required field" in text else kinds.WRONG_TYPE)
    if "UTF-8" in text or isinstance(error, UnicodeDecodeError):
        return Skip(kinds.NOT_TEXT)
    if "truncated" in text:
        return Skip(kinds.TRUNCATED)
    return Skip(kinds.NOT_TEXT if _binary(line) else kinds.NOT_THIS_FORMAT)


def _binary(line: bytes) -> bool:
    return b"\0" in line or not _decodes(line)


def _decodes(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
