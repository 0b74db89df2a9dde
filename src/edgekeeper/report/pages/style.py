"""The style sheet of the HTML report. Pure.

Colours are named by what they mean and kept in two palettes; ``PAIRS`` lists which is read on which, and a test holds each pair to the
contrast of WCAG 2.2 (4.5 for text, 3 for what is drawn).
"""

from __future__ import annotations

LIGHT = {
    "bg": "#fcfcfb",
    "panel": "#f3f4f4",
    "ink": "#191d21",
    "soft": "#535b64",
    "line": "#d5d9dd",
    "base": "#7b848d",
    "bad": "#b42318",
    "warn": "#8f5b00",
    "work": "#37618e",
    "calm": "#5f6973",
    "flow": "#76859a",
    "band": "#e4ebf3",
    "focus": "#0b5cad",
}
DARK = {
    "bg": "#15181b",
    "panel": "#1d2125",
    "ink": "#e7e9eb",
    "soft": "#a6aeb7",
    "line": "#353b42",
    "base": "#7d8791",
    "bad": "#ff8f85",
    "warn": "#e8b04f",
    "work": "#8ab4e4",
    "calm": "#9ba6b1",
    "flow": "#7f90a8",
    "band": "#212b37",
    "focus": "#8cc2ff",
}
PALETTES = {"light": LIGHT, "dark": DARK}

TEXT_PAIRS = tuple((text, ground) for text in ("ink", "soft") for ground in ("bg", "panel", "band")) + tuple(
    (text, "bg") for text in ("bad", "warn", "work", "focus")
)
"""Text and what it stands on: at least 4.5 : 1."""
DRAWN_PAIRS = tuple((tone, ground) for tone in ("bad", "warn", "work", "calm", "flow", "base") for ground in ("bg", "band"))
"""Bars, columns, lines that carry meaning: at least 3 : 1."""


def _palette(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


_LAYOUT = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif;
 font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.page{max-width:76rem;margin:0 auto;padding:2rem clamp(1rem,3vw,2.5rem) 4rem}
p{margin:0}
h1,h2,h3{line-height:1.25;margin:0;font-weight:650;text-wrap:pretty}
h1{font-size:clamp(1.25rem,1.05rem + .9vw,1.65rem);max-width:58rem}
h1.long{font-size:1.2rem;font-weight:600;line-height:1.4;max-width:54rem}
h2{font-size:1.15rem;margin-bottom:.75rem}
h3{font-size:1rem}
.over{color:var(--soft);margin-bottom:.5rem}
.unsure{border-left:4px solid var(--warn);padding-left:.9rem}
.doubt{color:var(--warn);font-weight:650;margin-bottom:.25rem}
.facts{display:flex;flex-wrap:wrap;gap:.75rem 2.25rem;margin:1.5rem 0 0;padding:.9rem 0;border-block:1px solid var(--line)}
.facts div{min-width:0}
dt{color:var(--soft);font-size:.8rem}
dd{margin:0}
nav ul{display:flex;flex-wrap:wrap;gap:.15rem 1.1rem;list-style:none;margin:.75rem 0 0;padding:0;font-size:.875rem}
a{color:var(--focus);text-underline-offset:.2em}
:focus-visible{outline:2px solid var(--focus);outline-offset:2px;border-radius:2px}
section{margin-top:2.75rem;scroll-margin-top:1rem}
.fig{margin:0 0 2.25rem;display:grid;grid-template-columns:minmax(0,1fr);gap:.5rem}
.fig:last-child{margin-bottom:0}
.fig header{display:flex;gap:.6rem;align-items:baseline}
.id{color:var(--soft);font-size:.75rem;font-weight:500;flex:0 1 auto;min-width:2.1rem}
.answer{max-width:48rem}
.un .answer{color:var(--soft)}
.tag{font-size:.75rem;border:1px solid currentColor;border-radius:3px;padding:0 .35rem;color:var(--soft);white-space:nowrap;font-weight:500}
.notes{margin:0;padding-left:1.1rem;color:var(--soft);font-size:.875rem;max-width:48rem}
figure{margin:.25rem 0 0;min-width:0}
figcaption{color:var(--soft);font-size:.8125rem;margin-top:.35rem;max-width:48rem}
figcaption b{color:var(--ink);font-weight:650}
.scroll{overflow:auto;max-width:100%}
.tablebox{border-block:1px solid var(--line);width:fit-content}
.tall{max-height:36rem}
table{border-collapse:collapse;overflow-wrap:normal;font-size:.875rem;line-height:1.35}
caption{text-align:left;color:var(--soft);font-size:.8125rem;padding:.35rem 0;position:sticky;left:0;max-width:calc(100vw - 2rem);width:max-content}
.heard{position:absolute;width:1px;height:1px;padding:0;overflow:hidden;clip-path:inset(50%)}
th,td{padding:.28rem 1rem .28rem 0;text-align:left;vertical-align:top;white-space:nowrap}
th:last-child,td:last-child{padding-right:.25rem}
thead th{position:sticky;top:0;background:var(--bg);color:var(--soft);font-weight:500;font-size:.8125rem;box-shadow:inset 0 -1px var(--line)}
tbody th{font-weight:500}
tbody tr+tr>*{border-top:1px solid var(--line)}
.r{text-align:right}
.t{white-space:normal;min-width:16rem;max-width:34rem;overflow-wrap:anywhere}
th.t{min-width:14.5rem;max-width:22rem}
details{font-size:.875rem}
summary{cursor:pointer;color:var(--soft);width:fit-content;padding:.1rem 0}
details[open] summary{margin-bottom:.35rem}
.multiples{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:1.25rem 2rem}
.multiples figure{border-top:1px solid var(--line);padding-top:.5rem;display:flex;flex-direction:column;justify-content:space-between}
.multiples figcaption{margin:0 0 .2rem}
.scaled{display:grid;grid-template-columns:3.2rem minmax(0,1fr)}
.scale{position:relative;font-size:11px;line-height:13px;color:var(--soft)}
.scale span{position:absolute;right:.5rem;white-space:nowrap}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1.1rem;list-style:none;margin:.4rem 0 0;padding:0;font-size:.8125rem;color:var(--soft)}
.legend li{display:flex;align-items:center;gap:.35rem}
.plain{margin:0;padding-left:1.1rem;max-width:48rem}
footer{margin-top:3rem;padding-top:.75rem;border-top:1px solid var(--line);color:var(--soft);font-size:.8125rem}
"""

_CHARTS = """
.defs{position:absolute}
svg{display:block;overflow:visible}
.chart text{font:11px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif;font-variant-numeric:tabular-nums;fill:var(--ink);
 paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-linejoin:round}
.chart text.at{fill:var(--soft)}
.chart text.day{font-weight:650;fill:var(--ink)}
.tl{display:grid;grid-template-columns:minmax(8rem,12.5rem) minmax(560px,1fr);width:100%;min-width:fit-content;padding:0 .5rem 2px 0}
.names{position:sticky;left:0;z-index:1;background:var(--bg);font-size:.8125rem;padding-right:.75rem}
.names div{overflow:hidden;text-overflow:ellipsis;white-space:nowrap;display:flex;align-items:center}
.names .n{display:block;line-height:24px}
.names .g{height:20px;color:var(--soft);font-size:.75rem;align-items:flex-end;border-top:1px solid var(--line)}
.tick{stroke:var(--line)}
.tick.day{stroke:var(--base)}
.rule,.decade{stroke:var(--line)}
.base{stroke:var(--base)}
.band{fill:var(--band)}
.edge{stroke:var(--base);stroke-dasharray:1 4}
.w{display:none}
.b{stroke-width:2}
.bad{fill:var(--bad);stroke:var(--bad)}
.warn{fill:var(--warn);stroke:var(--warn)}
.work{fill:var(--work);stroke:var(--work)}
.calm{fill:var(--calm);stroke:var(--calm)}
.maybe{stroke-width:1}
.tiny{stroke-width:3}
.tiny.maybe{stroke-dasharray:2 1.5}
.bad.maybe{fill:url(#h-bad)}
.warn.maybe{fill:url(#h-warn)}
.work.maybe{fill:url(#h-work)}
.calm.maybe{fill:url(#h-calm)}
.h-bad line{stroke:var(--bad);stroke-width:2.4}
.h-warn line{stroke:var(--warn);stroke-width:2.4}
.h-work line{stroke:var(--work);stroke-width:2}
.h-calm line{stroke:var(--calm);stroke-width:2}
.h-silent line{stroke:var(--bad);stroke-width:2}
.h-unmeasured circle{fill:var(--base)}
.sign{fill:var(--ink);stroke:var(--bg);stroke-width:1}
.s-down{fill:var(--bad)}
.s-hold{fill:var(--bg);stroke:var(--ink);stroke-width:1.8}
.requests{fill:var(--flow)}
.failed{fill:var(--bad)}
.none{stroke:none}
.silent{fill:url(#h-silent)}
.unmeasured{fill:url(#h-unmeasured)}
.spread{fill:var(--flow);opacity:.45}
.median{fill:none;stroke:var(--ink);stroke-width:1.6;vector-effect:non-scaling-stroke}
@media (min-width:1100px){.w{display:inline}}
@media (max-width:600px){.tl{grid-template-columns:8rem minmax(560px,1fr)}.names{font-size:.75rem}th.t{min-width:10.5rem}}
"""

_PRINT = """
@page{size:A4;margin:14mm 12mm}
@media print{
body{font-size:9.5pt;-webkit-print-color-adjust:exact;print-color-adjust:exact}
.page{padding:0;max-width:none}
nav,details:not([open]){display:none}
section{margin-top:1.5rem}
.scroll,.tablebox{overflow:visible;max-height:none}
.tl{grid-template-columns:9rem minmax(0,1fr);min-width:0;padding:0}
.names,thead th{position:static}
.names{font-size:.68rem}
table{width:100%;font-size:8pt}
th,td{white-space:normal;padding-right:.6rem}
.t,th.t{min-width:0}
h2,h3,.fig header,caption{break-after:avoid}
figure,tr,.multiples figure{break-inside:avoid}
a{color:inherit;text-decoration:none}
}
"""


def sheet() -> str:
    """The style sheet: light, dark where the reader's system is, light on paper."""
    light, dark = _palette(LIGHT), _palette(DARK)
    schemes = f":root{{color-scheme:light dark;{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    return schemes + _tight(_LAYOUT) + _tight(_CHARTS) + _tight(_PRINT)


def _tight(css: str) -> str:
    return css.replace("\n ", " ").replace("\n", "")
