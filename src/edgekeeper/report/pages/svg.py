"""What charts share: the frame with its text alternative, the axis, the hatchings and the signs. Pure.

Charts have no fixed width: along the time everything is placed in percent, so that one picture fits a telephone, a desk and a sheet of
paper, and its text stays as large as the text around it. Colour never stands alone: tones differ in height and hatching, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgekeeper.report.pages.markup import Child, Markup, el, number
from edgekeeper.report.pages.when import Zone, ticks

CHAR_PX = 6.6
"""How wide a character of a chart's text is, in words (11 px; Chromium with DejaVu Sans, the widest of the usual fonts: 6.1 on average, 2026-11-30)."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The time from left to right."""

    begin: float
    end: float

    def share(self, at: float) -> float:
        """Where a moment is, from 0 (left) to 1; what lies outside is on the edge."""
        if not at > self.begin:  # so is what is no number
            return 0.0
        return 1.0 if at >= self.end else (at - self.begin) / (self.end - self.begin)

    def x(self, at: float) -> str:
        """The same in percent."""
        return percent(self.share(at))

    def unit(self, at: float) -> float:
        """The same in the units of a stretched part, to a tenth."""
        return round(UNITS * self.share(at), 1)

    def width(self, begin: float, end: float) -> str:
        """How wide a span is, in percent."""
        return percent(max(0.0, self.share(end) - self.share(begin)))


def percent(share: float) -> str:
    """A share as SVG takes it."""
    return number(100 * share) + "%"


def beside(key: str, *words: tuple[float, str]) -> Markup:
    """Words at heights, to the left of a picture (its scale); its text alternative has them, too."""
    return el("div", [el("span", word, style=f"top:{number(y)}px") for y, word in words], class_="scale", aria_hidden="true", id=f"{key}-s")


def chart(key: str, title: str, desc: str, height: float, *body: Child) -> Markup:
    """A picture with its text alternative; ``key`` is unique on the page."""
    return el(
        "svg",
        el("title", title, id=f"{key}-t"),
        el("desc", desc, id=f"{key}-d"),
        *body,
        class_="chart",
        role="img",
        aria_labelledby=f"{key}-t {key}-d",
        width="100%",
        height=height,
    )


UNITS = 1000
"""How many units a stretched part is wide: about a pixel each. With ten times as many Chromium drew lines that were blurred (2026-11-30)."""


def stretched(y: float, height: float, *body: Child) -> Markup:
    """A part of a picture that is ``UNITS`` wide whatever its width is; down, a unit stays a pixel. For paths: they know no percent."""
    return el("svg", *body, x="0", y=y, width="100%", height=height, viewBox=f"0 0 {UNITS} {number(height)}", preserveAspectRatio="none")


def grid(axis: Axis, zone: Zone, top: float, bottom: float, *, narrow: int, wide: int = 0) -> tuple[Markup, ...]:
    """Lines and labels of the ticks, above the rows. ``narrow`` and ``wide`` say how many labels fit at each width; those between show only on wide pages."""
    few = ticks(axis.begin, axis.end, narrow, zone)
    places = {t.at for t in few}
    many = [t for t in ticks(axis.begin, axis.end, wide, zone) if t.at not in places] if wide > narrow else []
    out: list[Markup] = []
    for tick, shown in [*((t, "") for t in few), *((t, " w") for t in many)]:
        x, share = axis.x(tick.at), axis.share(tick.at)
        anchor = "start" if share < 0.03 else "end" if share > 0.97 else "middle"
        day = " day" if tick.day else ""
        out.append(el("line", x1=x, x2=x, y1=top, y2=bottom, class_=f"tick{day}{shown}"))
        out.append(el("text", tick.label, x=x, y=top - 5, text_anchor=anchor, class_=f"at{day}{shown}"))
    return tuple(out)


def bands(axis: Axis, spans: Sequence[tuple[float, float]], top: float, bottom: float) -> tuple[Markup, ...]:
    """The times when somebody worked on a node, behind everything, so that the eye can line up what happened with them."""
    inside = [(b, e) for b, e in spans if e > axis.begin and b < axis.end]
    filled = [el("rect", x=axis.x(b), width=axis.width(b, e), y=top, height=bottom - top, class_="band") for b, e in inside]
    edges = [el("line", x1=axis.x(at), x2=axis.x(at), y1=top, y2=bottom, class_="edge") for span in inside for at in span]  # one may lie in another
    return (*filled, *edges)


def shared() -> Markup:
    """The hatchings and signs that all pictures of a page refer to."""
    return el(
        "svg",
        el(
            "defs",
            *(_hatch(name, angle, gap) for name, angle, gap in (("bad", 45, 4), ("warn", -45, 4), ("work", 45, 5), ("calm", 45, 5), ("silent", 135, 5))),
            el(
                "pattern", el("circle", cx="2", cy="2", r="0.8"), id="h-unmeasured", width="6", height="6", patternUnits="userSpaceOnUse", class_="h-unmeasured"
            ),
            *(el("path", d=d, id=f"s-{name}") for name, d in _SIGNS.items()),
        ),
        width="0",
        height="0",
        aria_hidden="true",
        class_="defs",
    )


_SIGNS = {
    "down": "M-5 -4.5H5L0 4.5z",
    "up": "M-5 4.5H5L0 -4.5z",
    "act": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
    "hold": "M0 -5.5L5.5 0L0 5.5L-5.5 0z",
    "note": "M-1 -6h2v12h-2z",
    "before": "M0 0L6 -5V5z",
    "after": "M0 0L-6 -5V5z",
}
"""Signs around their own middle. ``hold`` is drawn hollow: something that was not done."""


def sign(name: str, x: str, y: float) -> Markup:
    """One of the signs, at a place."""
    name = name if name in _SIGNS else "note"
    return el("use", href=f"#s-{name}", x=x, y=y, class_=f"sign s-{name}")


def _hatch(name: str, angle: int, gap: int) -> Markup:
    line = el("line", x1="0", y1="0", x2="0", y2=gap)
    return el(
        "pattern",
        line,
        id=f"h-{name}",
        width=gap,
        height=gap,
        patternUnits="userSpaceOnUse",
        patternTransform=f"rotate({angle})",
        class_=f"h-{name}",
    )
