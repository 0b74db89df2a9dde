import math

import pytest

from edgekeeper.report.kinds import Request
from edgekeeper.report.rules import Group, Rules, Verdict


def test_first_class_that_holds_the_address_is_it():
    rules = Rules(groups=(Group("probes", ("192.0.2.7",)), Group("lan", ("192.0.2.0/24", "2001:db8:1::/48")), Group("rest", ("0.0.0.0/0",))))
    said = [rules.group_of(a, 0.0) for a in ("192.0.2.7", "192.0.2.8", "198.51.100.1", "2001:db8:1::5", "2001:db8:2::5", "::ffff:192.0.2.8", "x", "")]
    assert said == ["probes", "lan", "rest", "lan", "", "lan", "", ""]


def test_class_is_valid_from_until_and_the_cache_knows():
    rules = Rules(groups=(Group("public", ("127.0.0.1",), until=100.0), Group("local", ("127.0.0.1",), begin=100.0)))
    assert [rules.group_of("127.0.0.1", at) for at in (99.9, 100.0, 50.0, 1e9)] == ["public", "local", "public", "local"]
    assert rules.era(50.0) == (-math.inf, 100.0)
    assert rules.era(100.0) == (100.0, math.inf)


def test_what_is_no_network_is_said():
    with pytest.raises(ValueError, match="is not a network"):
        Group("x", ("192.0.2.0/240",))


@pytest.mark.parametrize(
    ("status", "bad", "verdict"),
    [
        (200, None, Verdict.GOOD),
        (404, None, Verdict.GOOD),
        (503, None, Verdict.BAD),
        (500, None, Verdict.OTHER),
        (499, None, Verdict.GONE),
        (0, True, Verdict.BAD),
        (0, False, Verdict.GOOD),
        (200, True, Verdict.BAD),
    ],
)
def test_verdict(status, bad, verdict):
    assert Rules().verdict(Request(0.0, 0.0, status, bad=bad)) is verdict
