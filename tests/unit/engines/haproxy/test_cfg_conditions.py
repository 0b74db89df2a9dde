from __future__ import annotations

import pytest

from edgekeeper.engines.haproxy.cfg_conditions import judge


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", False),
        ("0", False),
        ("7", True),
        ("!1", False),
        ("streq(a,a)", True),
        ('streq("$SET","value")', True),
        ('streq("$NOT_SET","value")', None),
        ("strneq(a,b) && strstr(haystack,hay)", True),
        ("defined(SET)", True),
        ("defined(NOT_SET)", None),
        ("version_atleast(2.4)", None),
        ("feature(OPENSSL)", None),
        ("feature(OPENSSL) || 1", True),
        ("feature(OPENSSL) && 0", False),
        ("!(feature(OPENSSL) && 1)", None),
        ("not-a-predicate(x)", None),
        ("nonsense", None),
        ("(" * 40 + "1" + ")" * 40, None),
    ],
)
def test_three_values(text: str, wanted: bool | None) -> None:
    assert judge(text, {"SET": "value"}) is wanted


def test_a_known_version_decides() -> None:
    assert judge("version_atleast(2.6.12)", {}, (2, 6, 12)) is True
    assert judge("version_atleast(3.0)", {}, (2, 6, 12)) is False
    assert judge("version_before(3.0-dev1)", {}, (2, 6, 12)) is True
