"""What kind of file a text is, and in a sentence why it cannot be audited when it is of neither HAProxy nor keepalived. Pure."""

from __future__ import annotations

import re

from edgekeeper.engines.haproxy.cfg import looks_like
from edgekeeper.engines.keepalived.cfg import looks_like as looks_like_keepalived

_DNSDIST = re.compile(r"^\s*(newServer|setLocal|addLocal|setACL|addAction|controlSocket|webserver|setServerPolicy)\s*\(", re.MULTILINE)
_DNSDIST_YAML = re.compile(r"^(binds|backends|query_rules|packet_caches)\s*:", re.MULTILINE)
_EMBEDDED = re.compile(r"^\s*[\w.-]*haproxy[\w.-]*\s*:\s*[|>]", re.MULTILINE | re.IGNORECASE)
_YAML = re.compile(r"\A(---\s*$|[\w.-]+:(\s|$))", re.MULTILINE)
_NGINX = re.compile(r"^\s*(server|http|upstream\s+\S+|stream|events)\s*\{\s*$", re.MULTILINE)
_JSON = re.compile(r"[\[{]\s*[\"\[{}\]]\s*[^%{]")
_LATER = "not in this version; nothing was judged"


def is_keepalived(text: str) -> bool:
    """Whether a text is a configuration of keepalived."""
    return looks_like_keepalived(_said(text))


def _said(text: str) -> str:
    return re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)


def why_not(name: str, text: str) -> str | None:
    """None for a configuration of HAProxy or keepalived; else what the file is, as one sentence."""
    if not text.strip():
        return f"{name} is empty; nothing was judged"
    marks = text.count("\0") + text.count("\ufffd")
    if "\0" in text[:65536] or marks > len(text) // 10:
        return f"{name} is not text; nothing was judged"
    said = _said(text)
    body = said.lstrip()
    if looks_like_keepalived(said):
        return None
    if _DNSDIST.search(said) or (_YAML.match(body) and _DNSDIST_YAML.search(said)):
        return f"{name} is a configuration of dnsdist: its audit is {_LATER}"
    if _YAML.match(body):
        inside = "; give the haproxy.cfg that stands in it as a file of its own" if _EMBEDDED.search(said) else ""
        return f"{name} is YAML, not a configuration of HAProxy or keepalived{inside or '; nothing was judged'}"
    if body.startswith("<") or _JSON.match(body):
        return f"{name} is {'XML or HTML' if body.startswith('<') else 'JSON'}, not a configuration of HAProxy or keepalived; nothing was judged"
    if _NGINX.search(said):  # its `listen` is a word of HAProxy's too
        return f"{name} is a configuration of nginx, not of HAProxy or keepalived; nothing was judged"
    if looks_like(text.removeprefix("\ufeff")):
        return None
    if not said.strip():
        return f"{name} has only comments; nothing was judged"
    return (
        f"{name} has no section of HAProxy (global, defaults, frontend, backend, listen)"
        " and no block of keepalived (vrrp_instance, vrrp_script); nothing was judged"
    )
