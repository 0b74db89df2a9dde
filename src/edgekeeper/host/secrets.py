"""Secrets from where the config says they are: a file that only its owner may read, or the environment."""

from __future__ import annotations

import os

from edgekeeper.config.secret import SecretSource
from edgekeeper.errors import MissingError, UsageError
from edgekeeper.host.files import read_secret
from edgekeeper.log import withhold


def read(source: SecretSource | str) -> str:
    """The secret of a ``*_file`` or ``*_env`` (a text is a file's path), one line, without its line end.

    From then on no log line shows it. UsageError when it is empty, has several lines or may be read by
    others; MissingError when it is not there. No message repeats any part of it.
    """
    if isinstance(source, SecretSource) and source.secret_env is not None:
        name = source.secret_env
        value = os.environ.get(name, "").rstrip("\r\n")
        place = f"the environment variable {name}"
        if not value:
            msg = f"{place} is not set or empty; set it, or use secret_file"
            raise MissingError(msg)
    else:
        path = source if isinstance(source, str) else source.secret_file or ""
        value = read_secret(path)
        place = f"secret {path}"
    if not value.isprintable():
        msg = f"{place} holds a line end or a control character in its middle; it is not used: a secret is one line"
        raise UsageError(msg)
    withhold(value)
    return value
