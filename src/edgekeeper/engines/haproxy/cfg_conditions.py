"""``.if``, ``.elif``, ``.else`` and ``.endif`` of haproxy.cfg, in three values: true, false, cannot be told from here. Pure.

HAProxy judges these when it starts, by its own version, build and environment. Where the file alone does not tell, the
reader of the file takes both ways, one after the other (``cfg.readings``), so that nothing is claimed that may not be so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from edgekeeper.engines.haproxy.cfg_words import words

_CALL = re.compile(r"([a-z_]+)\s*\((.*)\)", re.DOTALL)
_VERSION = re.compile(r"\d+(?:\.\d+)*")
_ALWAYS_SET = frozenset({"HAPROXY_CFGFILES", "HAPROXY_LOCALPEER", "HAPROXY_STARTUP_VERSION"})
_DEEPEST = 16

Truth = bool | None
"""True, false, or not to be told from here."""


def judge(text: str, env: Mapping[str, str], version: tuple[int, ...] | None = None) -> Truth:
    """Whether a condition holds; None when it depends on what the file does not say (environment, build, version)."""
    return _either(text.strip(), env, version, _DEEPEST)


def _either(text: str, env: Mapping[str, str], version: tuple[int, ...] | None, depth: int) -> Truth:
    """``a || b``: binds weaker than ``&&``."""
    if depth == 0:
        return None
    parts = _split(text, "||")
    if len(parts) > 1:
        return _any(_either(part, env, version, depth - 1) for part in parts)
    parts = _split(text, "&&")
    if len(parts) > 1:
        wrong = _any(_not(_either(part, env, version, depth - 1)) for part in parts)
        return _not(wrong)
    return _term(parts[0].strip(), env, version, depth)


def _term(text: str, env: Mapping[str, str], version: tuple[int, ...] | None, depth: int) -> Truth:
    if text.startswith("!"):
        return _not(_either(text[1:].strip(), env, version, depth - 1))
    if text.startswith("(") and text.endswith(")"):
        return _either(text[1:-1].strip(), env, version, depth - 1)
    plain = words(text, env)
    if not plain:
        return False
    found = _CALL.fullmatch(text)
    if found is None:
        word = plain[0]
        return int(word) != 0 if word.isascii() and word.isdigit() and len(word) < 20 else None
    arguments = [" ".join(words(part.strip(), env)) for part in _split(found[2], ",")]
    if any("$" in argument for argument in arguments):
        return None
    predicate = _PREDICATES.get(found[1])
    return predicate(arguments, env, version) if predicate else None


def _defined(arguments: list[str], env: Mapping[str, str], _version: tuple[int, ...] | None) -> Truth:
    return True if arguments and (arguments[0] in env or arguments[0] in _ALWAYS_SET) else None


def _streq(arguments: list[str], _env: Mapping[str, str], _version: tuple[int, ...] | None) -> Truth:
    return arguments[0] == arguments[1] if len(arguments) == 2 else None


def _strneq(arguments: list[str], _env: Mapping[str, str], _version: tuple[int, ...] | None) -> Truth:
    return arguments[0] != arguments[1] if len(arguments) == 2 else None


def _strstr(arguments: list[str], _env: Mapping[str, str], _version: tuple[int, ...] | None) -> Truth:
    return arguments[1] in arguments[0] if len(arguments) == 2 else None


def _atleast(arguments: list[str], _env: Mapping[str, str], version: tuple[int, ...] | None) -> Truth:
    wanted = _numbers(arguments[0]) if arguments else None
    return None if version is None or wanted is None else version >= wanted


def _before(arguments: list[str], env: Mapping[str, str], version: tuple[int, ...] | None) -> Truth:
    return _not(_atleast(arguments, env, version))


_Predicate = Callable[[list[str], Mapping[str, str], tuple[int, ...] | None], Truth]
_PREDICATES: dict[str, _Predicate] = {
    "defined": _defined,
    "streq": _streq,
    "strneq": _strneq,
    "strstr": _strstr,
    "version_atleast": _atleast,
    "version_before": _before,
}
"""The others (``feature``, ``enabled``, ``openssl_version_atleast``, ``awslc_api_atleast``...) depend on the build."""


def _numbers(text: str) -> tuple[int, ...] | None:
    found = _VERSION.match(text)
    return tuple(int(part) for part in found[0].split(".")) if found else None


def _not(value: Truth, /) -> Truth:
    return None if value is None else not value


def _any(values: object) -> Truth:
    """True when one is true, false when all are false, else unknown."""
    seen: list[Truth] = list(values)  # type: ignore[call-overload]
    return True if True in seen else None if None in seen else False


def _split(text: str, by: str) -> list[str]:
    """Split at ``by`` outside of parentheses and quotes."""
    parts, start, depth, quote, at = [], 0, 0, "", 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif depth == 0 and text.startswith(by, at):
            parts.append(text[start:at])
            at += len(by)
            start = at
            continue
        at += 1
    return [*parts, text[start:]]
