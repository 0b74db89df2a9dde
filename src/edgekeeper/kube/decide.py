"""When to ask again, and whom: what the client and its reflectors decide, as functions of values. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

FIRST_S = 0.2
LONGEST_S = 5.0
ABSENT_S = 30.0
"""A kind that the cluster does not know is asked for so seldom: somebody has to install it first."""
EACH_S = 1.0
BURST = 4.0
"""At most one round a second for each kind on average, whatever a server does (each watch ended at once, say), and four at once."""
LEAST_PAGE = 20
LIST_AFTER = 3
"""Failed rounds in a row after which the list is read anew: whatever became of the cluster meanwhile, a version of before says little about it."""
LIST_AGAIN_S = 600.0
"""The list is read anew this often although nothing failed: what a watch has lost, for whatever reason, is not lost for ever."""


def pause(failures: int, chance: float) -> float:
    """Seconds to wait after so many failures in a row (1: the first); ``chance`` is 0 to 1, drawn by the caller.

    0.2 s doubling to 5 s, half of it left to chance (of the first, all): what lost its server at one moment does not come back at one.
    """
    longest = min(LONGEST_S, FIRST_S * 2.0 ** min(max(failures, 1) - 1, 10))
    return longest * chance if failures <= 1 else longest * (1 + chance) / 2


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast one reflector asks: at once while all goes well, ever slower while it fails, and never more often than ``EACH_S`` on average."""

    failures: int = 0
    """In a row."""
    spare: float = BURST
    """Rounds that may begin at once."""
    at: float = 0.0
    """When ``spare`` was true, in monotonic seconds."""

    def well(self) -> Pace:
        """The server was heard in a watch: a list alone is not enough, it may be followed by the same failure again and again."""
        return self if not self.failures else replace(self, failures=0)

    def ended(self, now: float, *, failed: bool, absent: bool = False, chance: float) -> tuple[Pace, float]:
        """The pace after a round that ended now, and the seconds until the next one may begin."""
        failures = self.failures + 1 if failed else self.failures
        spare = min(BURST, self.spare + max(0.0, now - self.at) / EACH_S) - 1
        wait = 0.0 if not failed else ABSENT_S * (1 + chance) / 2 if absent else pause(failures, chance)
        return Pace(failures, spare, now), max(wait, -spare * EACH_S)


def wants_list(pace: Pace, version: str, age_s: float, *, relisted: bool = False) -> bool:
    """Whether the next round begins with the full list: there is no version to go on from, it does not help, or the list is old (in seconds).

    ``relisted``: it was read since the failures began. Then it is read at every third only: a server may be well but for its watches.
    """
    again = pace.failures >= LIST_AFTER and (not relisted or pace.failures % LIST_AFTER == 0)
    return not version or again or age_s >= LIST_AGAIN_S


def behind(told: str, known: str) -> bool:
    """Whether a cluster that tells this version has lost the known one: its etcd was made anew, or restored from a backup.

    It ends such a watch in good order and tells nothing in it until it gets there (measured, Kubernetes 1.20), so that a copy which is wrong would
    look true. Versions count up; of one that is no number nothing is said.
    """
    numbers = told.isascii() and told.isdigit() and known.isascii() and known.isdigit()
    return numbers and int(told) < int(known)


def page(size: int, usual: int) -> int:
    """How many objects a page has after one of ``size`` (0: all at once) took too long: over a slow line a smaller one may come within the deadline."""
    return max(LEAST_PAGE, size // 3) if size else usual


def following(servers: Sequence[str], used: str) -> str:
    """The server to ask after ``used`` gave no answer: the next one, in turn."""
    return servers[(servers.index(used) + 1) % len(servers)] if used in servers else servers[0]
