from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgekeeper.engines.haproxy.features import parse
from edgekeeper.errors import MissingError

NEW = "HAProxy version 3.2.26-1 2026/05/01 - https://haproxy.org/\nStatus: x\n\nFeature list : -51DEGREES +OPENSSL +TPROXY -WURFL\n"


@pytest.mark.parametrize(
    ("text", "version", "transparent", "tls"),
    [
        (NEW, "3.2.26", True, True),
        ("HAProxy version 2.6.12-1+deb12u3 2025/10/03 - https://haproxy.org/\nFeature list : -OPENSSL -TPROXY\n", "2.6.12", False, False),
        ("HAProxy version 3.3-dev4-abc 2026/01/01\nFeature list : +OPENSSL_AWSLC +TPROXY\n", "3.3.4", True, True),
        ("HAProxy version 2.8 2026/01/01\n", "2.8.0", True, True),
    ],
)
def test_what_a_build_can(text: str, version: str, transparent: bool, tls: bool) -> None:
    found = parse(text)
    assert (found.text, found.transparent, found.tls) == (version, transparent, tls)


@pytest.mark.parametrize(
    ("text", "said"),
    [("HAProxy version 2.4.22-1 2023/02/14\n", "2.4.22 is older than 2.6"), ("nginx version: x", "it said 'nginx version: x'"), ("", "it said 'nothing'")],
)
def test_what_is_not_one_that_can_run(text: str, said: str) -> None:
    with pytest.raises(MissingError, match=said):
        parse(text)


@given(st.text())
def test_any_answer_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(MissingError):
        assert parse(text).version >= (2, 6, 0)
