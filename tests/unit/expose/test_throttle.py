"""A limit that says nothing but no: calls go on for ever, as fast as it bears, and at full speed once it is gone."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from edgekeeper.expose.throttle import FIRST_S, LONGEST_S, Throttle


@dataclass
class Bucket:
    """The server's own limit: so many calls at once, then so many a minute."""

    per_minute: float
    burst: float
    tokens: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = self.burst

    def allows(self, now: float) -> bool:
        self.tokens = min(self.burst, self.tokens + (now - self.at) * self.per_minute / 60)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


def call(throttle: Throttle, bucket: Bucket, now: float) -> tuple[Throttle, float, bool]:
    """One call as soon as it may go: the throttle after it, when it went, and whether it was borne."""
    now += throttle.wait_s(now)
    throttle = throttle.went(now)
    if bucket.allows(now):
        return throttle.bore(now), now, True
    return throttle.refuse(now, now), now, False


def test_at_six_a_minute_a_day_of_wanting_more_gets_nearly_all_that_there_is_and_is_rarely_refused() -> None:
    throttle, bucket, now, borne, refused = Throttle(), Bucket(6, 500), 0.0, 0, 0
    while now < 86_400:
        throttle, now, well = call(throttle, bucket, now)
        borne, refused = borne + well, refused + (not well)
    assert borne > 0.95 * (500 + 6 * 1440)
    assert refused < borne / 3


def test_a_call_a_minute_is_never_held_back_by_it() -> None:
    throttle, bucket = Throttle(), Bucket(6, 500)
    for minute in range(1440):
        throttle, now, well = call(throttle, bucket, minute * 60.0)
        assert (now, well) == (minute * 60.0, True)


def test_a_server_that_always_refuses_is_asked_every_two_minutes_and_no_more() -> None:
    throttle, bucket, now, calls = Throttle(), Bucket(0, 0), 0.0, 0
    while now < 86_400:
        throttle, now, _ = call(throttle, bucket, now)
        calls += 1
    assert calls <= 86_400 / LONGEST_S + 5


def test_once_the_limit_is_gone_full_speed_is_back_within_a_few_minutes() -> None:
    throttle, now = Throttle(), 0.0
    for _ in range(20):
        throttle, now, _ = call(throttle, Bucket(0, 0), now)
    begun, calls = now, 0
    while throttle.wait_s(now) or throttle.gap_s:
        throttle, now, _ = call(throttle, Bucket(10**6, 10**6), now)
        calls += 1
    assert calls < 30
    assert now - begun < 15 * 60


def test_calls_that_were_refused_together_are_one_refusal() -> None:
    throttle = Throttle()
    for _ in range(16):
        throttle = throttle.refuse(1.0, 1.5)
    assert throttle.wait_s(1.5) == FIRST_S
    assert throttle.refused == 16
    assert throttle.bore(1.0) == throttle, "one that went out before the refusal says nothing about now"


@settings(max_examples=15)
@given(st.floats(0.5, 600), st.integers(1, 50))
def test_whatever_the_limit_is_calls_go_on(per_minute: float, burst: int) -> None:
    throttle, bucket, now, borne = Throttle(), Bucket(per_minute, burst), 0.0, 0
    for _ in range(200):
        throttle, now, well = call(throttle, bucket, now)
        borne += well
        assert throttle.wait_s(now) <= LONGEST_S
    assert borne >= 40
