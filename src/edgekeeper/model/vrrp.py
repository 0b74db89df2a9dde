"""What VRRP costs, in seconds: the sums that a configuration is refused by. Pure arithmetic of RFC 9568 and of keepalived's scripts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MoveSum:
    """Seconds from the death of a service to its VIP's move, at most, and the sum as a person reads it."""

    seconds: float
    text: str


def skew_s(priority: int, advert_s: float) -> float:
    """What a backup of this priority waits after an owner has let go: ``(256 - priority) / 256`` of an advert (0.258 s at 190, measured 0.28)."""
    return (256 - priority) / 256 * advert_s


def master_down_s(priority: int, advert_s: float) -> float:
    """What a backup waits for an owner that says nothing any more: three adverts and the skew."""
    return 3 * advert_s + skew_s(priority, advert_s)


def move_sum(interval_s: float, fall: int, timeout_s: float, skew: float, *, lowers_only: float | None = None) -> MoveSum:
    """Seconds until a failed or hung track script has moved the VIP; ``lowers_only`` is the advert interval where failure only lowers the priority."""
    seconds = interval_s * fall + timeout_s + skew
    text = f"{interval_s:g} s x {fall} looks + {timeout_s:g} s timeout + {skew:.2g} s skew"
    if lowers_only is not None:
        seconds += 3 * lowers_only
        text += f" + 3 x {lowers_only:g} s adverts"
    return MoveSum(seconds, text)
