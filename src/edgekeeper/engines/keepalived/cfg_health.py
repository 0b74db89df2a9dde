"""What a track script can see, and how long it takes: read from its command line and, where it is at hand, its text. Pure.

It knows the programs that such scripts are made of, and says nothing of others.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgekeeper.engines.keepalived.cfg_values import Script

LONGEST = 65536
"""Characters of a script that are looked at."""
LONGEST_LINE = 2000
OWN_LIMIT_S = 0.9
"""After what ``edgekeeper vip probe`` gives up by itself."""

_PROCESS = frozenset({"killall", "pidof", "pgrep", "systemctl", "service", "ps", "kill"})
_LISTEN = frozenset({"ss", "netstat", "lsof"})
_CONNECT = frozenset({"nc", "ncat", "netcat", "telnet"})
_ASK = frozenset({"curl", "wget", "dig", "drill", "kdig", "host", "nslookup", "openssl", "mysql", "mysqladmin", "psql", "pg_isready", "redis-cli", "http"})
_WRAP = frozenset({"sudo", "env", "exec", "nice", "chroot", "command", "if", "elif", "then", "else", "do", "while", "until", "!", "{", "return"})
_PARTS = re.compile(r"\|\||&&|[;|\n`()&]")
_ASSIGN = re.compile(r"^\s*(?:export\s+|readonly\s+|local\s+)?([A-Za-z_]\w*)=[\"']?([^\s\"'$`;]*)[\"']?\s*;?\s*(?:#.*)?$", re.MULTILINE)
_USE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_IP = re.compile(r"(?<![\w.:])\[?((?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7})\]?(?![\w.])")
_DEV_TCP = re.compile(r"/dev/(?:tcp|udp)/([^/\s]+)/")
_HOLDS = re.compile(r"\bip\s+(?:-\S+\s+)*a(?:d|dd|ddr|ddress)?\b[^\n]*grep[^\n]*")
_NUMBER = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)(ms|s|m)?")


@dataclass(frozen=True, slots=True)
class Look:
    """What one track script does.

    ``kind``: process (whether one runs), listen (whether a port is open), connect (whether a connection is made), ask (a real
    question), other (not known). ``limit_s``: after what it gives up by itself. ``blind``: why it passes on a service that
    hangs, as sentences. ``asked``: addresses that it talks to, without those that it asks for only where this node holds them.
    ``may_end_well``: the program ends with 0 when keepalived ends it.
    """

    kind: str
    limit_s: float | None = None
    can_hang: bool = True
    blind: tuple[str, ...] = ()
    asked: frozenset[str] = frozenset()
    may_end_well: bool = False


def look(script: Script, text: str | None = None) -> Look:
    """What a script is, by its command line, and by its text when it is a script at hand."""
    if script.argv[1:] and "vip" in script.argv and "probe" in script.argv:
        return Look("ask", OWN_LIMIT_S, asked=_addresses(script.command))
    inner = text if text is not None and text.startswith("#!") else None
    shell = script.argv[:1] and _base(script.argv[0]) in {"sh", "bash", "dash"} and "-c" in script.argv
    said = inner[:LONGEST] if inner is not None else (" ".join(script.argv[script.argv.index("-c") + 1 :]) if shell else script.command)
    if inner is not None and not re.match(r"#!\s*\S*(?:/|\s)(?:ba|da|a|z|k)?sh\b", inner):
        return Look("other", asked=frozenset())  # another language: nothing is known of it
    said = "\n".join(line[:LONGEST_LINE] for line in said.replace("\\\n", " ").split("\n") if not line.lstrip().startswith("#"))
    values = dict(_ASSIGN.findall(said))
    said = _USE.sub(lambda found: values.get(found[1], found[0])[:256], said)[: 2 * LONGEST]
    found = [one for one in map(_command, _PARTS.split(said)) if one is not None]
    if not found:
        return Look("connect", asked=frozenset(_hosts(said)), blind=_CONNECTS) if _DEV_TCP.search(said) else Look("other")
    return _judged(found, said, alone=inner is None and not shell)


_CONNECTS = ("it only opens a connection, which a service that hangs still accepts",)


def _judged(found: Sequence[_Command], said: str, *, alone: bool) -> Look:
    kinds = {one.kind for one in found}
    kind = next(k for k in ("ask", "connect", "listen", "process") if k in kinds)
    if _DEV_TCP.search(said) and kind in {"listen", "process"}:
        kind = "connect"
    asking = [one for one in found if one.kind in {"ask", "connect"}]
    limits = [one.limit_s for one in asking]
    held = " ".join(_HOLDS.findall(said))
    asked = frozenset(address for one in asking for address in one.addresses) - _addresses(held)
    known = [limit for limit in limits if limit is not None]
    limit = max(known) if known and len(known) == len(limits) else None
    ends_well = alone and _base(said.split(maxsplit=1)[0]) in {"dig", "kdig"}
    return Look(kind, limit, can_hang=bool(asking), blind=_why_blind(kind, asking, said), asked=asked, may_end_well=ends_well)


def _why_blind(kind: str, asking: Sequence[_Command], said: str) -> tuple[str, ...]:
    if kind == "process":
        return ("it only looks whether a process is there, which one that hangs is",)
    if kind == "listen":
        return ("it only looks whether a port is open, which that of a service that hangs is",)
    if kind == "connect":
        return _CONNECTS
    curls = [one for one in asking if one.program == "curl"]
    if not curls:
        return ()
    out = []
    judged = "http_code" in said or re.search(r"\bcurl\b[^\n|]*\|[^\n]*\b(?:grep|jq|awk)\b", said) or re.search(r"\$\(\s*curl\b|`\s*curl\b", said)
    if not judged and not any(one.fails for one in curls):
        out.append("curl without -f passes on any HTTP answer, also 500")
    if any(one.limit_s is None for one in curls):
        out.append("curl without --max-time waits for a service that hangs until keepalived ends it")
    return tuple(out)


@dataclass(frozen=True, slots=True)
class _Command:
    """One command of a script."""

    program: str
    kind: str
    limit_s: float | None
    addresses: frozenset[str]
    fails: bool = False


def _command(text: str) -> _Command | None:
    words = [word.strip("\"'") for word in text.split()]
    limit: float | None = None
    while words:
        first = _base(words[0])
        if first == "timeout":
            words = words[1:]
            while words and words[0].startswith("-"):
                words = words[2:] if words[0] in {"-s", "-k"} else words[1:]
            limit = _seconds(words[0]) if words else None
            words = words[1:]
        elif first in _WRAP or re.fullmatch(r"[A-Za-z_]\w*=\S*", words[0]):
            words = words[1:]
        else:
            break
    if not words:
        return None
    program, rest = _base(words[0]), words[1:]
    kind = next((kind for kind, known in _KINDS if program in known), None)
    if kind is None or (program == "kill" and "-0" not in rest):
        return None
    own, fails = _options(program, rest)
    limits = [one for one in (limit, own) if one is not None]
    return _Command(program, kind, min(limits, default=None), _addresses(text), fails)


_KINDS = (("process", _PROCESS), ("listen", _LISTEN), ("connect", _CONNECT), ("ask", _ASK))


def _options(program: str, words: Sequence[str]) -> tuple[float | None, bool]:
    """After what a program gives up by itself, and whether it fails on an HTTP error."""
    if program in {"dig", "kdig"}:
        time = next((_seconds(w.partition("=")[2]) for w in words if w.startswith(("+time=", "+timeout="))), 5.0)
        tries = next((_seconds(w.partition("=")[2]) for w in words if w.startswith("+tries=")), None)
        retry = next((_seconds(w.partition("=")[2]) for w in words if w.startswith("+retry=")), None)
        return (time or 5.0) * (tries or (retry + 1 if retry is not None else 3)), False
    limit, fails = None, program != "curl"
    for at, word in enumerate(words):
        after = words[at + 1] if at + 1 < len(words) else ""
        if program == "curl" and re.fullmatch(r"-[A-Za-z]*m", word):
            limit = _seconds(after)
        elif program == "curl" and (glued := re.fullmatch(r"-[A-Za-z]*m(\d+(?:\.\d+)?)", word)):
            limit = _seconds(glued[1])
        elif word.startswith(("--max-time", "--timeout")) or (program in {"nc", "ncat", "netcat"} and word == "-w") or (program == "wget" and word == "-T"):
            limit = _seconds(word.partition("=")[2] or after)
        fails = fails or word.startswith("--fail") or re.fullmatch(r"-[A-Za-z]*f[A-Za-z]*[0-9.]*", word) is not None
    return limit, fails


def _seconds(text: str) -> float | None:
    found = _NUMBER.fullmatch(text)
    return None if found is None else float(found[1]) * {"ms": 0.001, "m": 60.0}.get(found[2] or "s", 1.0)


def _base(word: str) -> str:
    return word.rpartition("/")[2]


def _hosts(text: str) -> Iterator[str]:
    for found in _DEV_TCP.finditer(text):
        yield from _addresses(found[1])


def _addresses(text: str) -> frozenset[str]:
    """Every address in a text, in its usual form."""
    out = set()
    for found in _IP.finditer(text):
        try:
            out.add(str(ipaddress.ip_address(found[1])))
        except ValueError:
            continue
    return frozenset(out)
