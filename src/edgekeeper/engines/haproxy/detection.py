"""How long HAProxy takes to notice a server that accepts and never answers: the sum, from the figures of its config. Pure.

A check that gets no answer costs its whole timeout, and the next one starts only after that. So with T the time one check
waits (``timeout check``, else ``inter``), F the pause between checks once one has failed (``fastinter``, else ``inter``):

    from  T + (fall - 1) x (F + T)          the server hangs just before a check begins
    to    inter + T + (fall - 1) x (F + T)  it hangs just after one began and was answered

Measured with real engines: "inter 2s fall 3" 11.1 s (2.6 and 3.2; the sum says 10 to 12, not 6), "inter 1s fall 2" 3.15 s
(3 to 4), "inter 1s fall 3" with ``timeout check 2s`` 8.1 to 8.8 s (8 to 9).
"""

from __future__ import annotations

from edgekeeper.model.time import format_duration


def worst(
    inter_s: float, fast_s: float | None = None, timeout_s: float | None = None, fall: int = 3, *, spread: int = 0, connect_s: float | None = None
) -> tuple[float, float]:
    """Least and most seconds from the hang to DOWN.

    ``spread``: ``spread-checks``, percent that each pause may be shorter or longer. ``connect_s``: ``timeout connect``; before 3.2 a
    check may wait as long as that, up to ``inter``, where it is longer than ``timeout check``.
    """
    fast = inter_s if fast_s is None else fast_s
    short, long = waits(inter_s, timeout_s, connect_s)
    share = min(max(spread, 0), 50) / 100
    least = short + (fall - 1) * (fast * (1 - share) + short)
    most = inter_s * (1 + share) + long + (fall - 1) * (fast * (1 + share) + long)
    return round(least, 6), round(most, 6)


def waits(inter_s: float, timeout_s: float | None, connect_s: float | None = None) -> tuple[float, float]:
    """Least and most seconds that one check without an answer takes.

    Measured with ``timeout connect 2s``, ``inter 1s``, ``timeout check 500ms``: 503 or 996 ms on 2.6.12, 1,001 to 1,004 ms on 3.0.11,
    502 to 507 ms on 3.2.26; with ``timeout connect 500ms`` 502 to 516 ms on all three.
    """
    if timeout_s is None:
        return inter_s, inter_s
    return timeout_s, max(timeout_s, min(connect_s if connect_s is not None else timeout_s, inter_s))


def sentence(
    inter_s: float, fast_s: float | None = None, timeout_s: float | None = None, fall: int = 3, *, spread: int = 0, connect_s: float | None = None
) -> str:
    """The sum written out: ``10s to 12s: inter 2s + 2s + 2 x (2s + 2s), fall 3``."""
    fast = inter_s if fast_s is None else fast_s
    short, long = waits(inter_s, timeout_s, connect_s)
    least, most = worst(inter_s, fast_s, timeout_s, fall, spread=spread, connect_s=connect_s)
    told = "timeout check" if timeout_s is not None else "inter, since no timeout check is set"
    if long > short:
        told += f"; before 3.2 up to {format_duration(long)}, for timeout connect"
    rounds = f" + {fall - 1} x ({format_duration(fast)} + {format_duration(long)})" if fall > 1 else ""
    spreads = f", pauses vary by {spread} %" if spread else ""
    return (
        f"{format_duration(least)} to {format_duration(most)}: up to {format_duration(inter_s)} until the next check, "
        f"{format_duration(long)}{rounds}; a check waits {format_duration(short)} ({told}), fall {fall}{spreads}"
    )
