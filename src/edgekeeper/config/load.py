"""The config file to a typed ``Root``, or every mistake in it at once as ``file:line:column``.

Only the command line reads it. A reload reads again and gets a new value, or an error and keeps
the old one.
"""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edgekeeper.config.kinds import check_domain, check_node
from edgekeeper.config.mistakes import explain
from edgekeeper.config.root import RESERVED, Root, Rule, broken_rules, rules_beside_mistakes
from edgekeeper.config.yamltext import MAX_BYTES, Document, decode, dotted, read_yaml
from edgekeeper.errors import ConfigError, Mistake, UsageError
from edgekeeper.model.text import printable

PLACES = ("edgekeeper.yaml", "/etc/edgekeeper/edgekeeper.yaml")
"""Where the config is looked for when --config does not say, in this order."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A config without mistakes: its values, the file that they are from, and where each stands in it."""

    root: Root
    file: str
    positions: Document


def find(option: str | None = None) -> Path:
    """The config file: the one named by ``--config``, else the first of ``PLACES`` that exists."""
    if option:
        return Path(option)
    for place in PLACES:
        if Path(place).exists():
            return Path(place)
    msg = f"no config: neither ./{PLACES[0]} nor {PLACES[1]} is there; write one with `edgekeeper init`, or name it with --config"
    raise UsageError(msg)


def load(path: str | Path) -> Loaded:
    """Read a config file; ConfigError with every mistake, each with its line and column."""
    file = str(path)
    return parse(decode(_bytes(file), file), file)


def parse(text: str, file: str) -> Loaded:
    """The config that a text holds; ``file`` is only what errors call it."""
    document = read_yaml(text, file)
    mistakes = list(document.mistakes)
    tree = document.value
    if tree is None:
        mistakes.append(Mistake(1, 1, "", "the file is empty; `edgekeeper init` writes a commented one"))
    elif not isinstance(tree, dict):
        place = document.place(())
        mistakes.append(Mistake(place.line, place.column, "", "a config is a mapping of sections, such as dns:"))
    if mistakes and not isinstance(tree, dict):
        raise ConfigError(printable(file), tuple(mistakes))
    for name in RESERVED:
        if name in tree:
            place = document.place((name,), key=True)
            mistakes.append(Mistake(place.line, place.column, name, "known, but this version cannot run it; remove the section"))
    known = {name: value for name, value in tree.items() if name not in RESERVED}
    root = _validate(known, document, mistakes)
    if root is not None:
        mistakes += [_broken(document, rule) for rule in (*broken_rules(root), *_written_twice(known, root))]
        mistakes += [_broken(document, rule) for rule in (rules_beside_mistakes(known) if root.lb is None else ())]
    if mistakes or root is None:
        raise ConfigError(printable(file), tuple(dict.fromkeys(mistakes)))
    return Loaded(root, file, document)


def _validate(tree: Mapping[str, Any], document: Document, mistakes: list[Mistake]) -> Root | None:
    """The config, or what is left of it without the sections that are wrong, so that the rules of the others are told too."""
    try:
        return Root.model_validate(tree)
    except ValidationError as err:
        mistakes += explain(Root, document, err)
        bad = {error["loc"][0] for error in err.errors(include_url=False)}
    try:
        return Root.model_validate({name: value for name, value in tree.items() if name not in bad})
    except ValidationError:
        return None


def _written_twice(tree: Mapping[str, Any], root: Root) -> list[Rule]:
    """Zones of ``forward`` that are the same name in two spellings: the values alone would show only the last."""
    if root.dns is None or not root.dns.forward:
        return []
    seen: dict[str, str] = {}
    out: list[Rule] = []
    for name in tree["dns"]["forward"]:
        first = seen.setdefault(check_domain(name), name)
        if first != name:
            out.append(Rule(("dns", "forward", name), f"the zone {name} is {first} in another spelling; remove one"))
    return out


def _broken(document: Document, rule: Rule) -> Mistake:
    place = document.place(rule.where)
    return Mistake(place.line, place.column, dotted(rule.where), printable(rule.what))


def _bytes(file: str) -> bytes:
    """What a regular file holds; never waits (a FIFO), never more than a config may have."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as err:
        reason = err.strerror if isinstance(err, OSError) and err.strerror else str(err)
        raise ConfigError(printable(file), (Mistake(0, 0, "", f"cannot be read: {reason}"),)) from err
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ConfigError(printable(file), (Mistake(0, 0, "", "is not a file; name the config file itself"),))
        with os.fdopen(handle, "rb", closefd=False) as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as err:
        raise ConfigError(printable(file), (Mistake(0, 0, "", f"cannot be read: {err.strerror or err}"),)) from err
    finally:
        os.close(handle)


def select_node(root: Root, option: str | None = None, host_name: str | None = None) -> str:
    """Which node this is: ``--node``, else ``node:``, else the host name (whole, or up to its first dot).

    With ``nodes:`` it must be one of them; UsageError says which there are.
    """
    if option or root.node:
        name = option or root.node or ""
        try:
            check_node(name)
        except ValueError as err:
            msg = f"--node {err}"
            raise UsageError(msg) from None
        if root.nodes and name not in root.nodes:
            msg = f"{name} is not among nodes: {', '.join(root.nodes)}; name one of them with --node"
            raise UsageError(msg)
        return name
    host = socket.gethostname() if host_name is None else host_name
    candidates = [host, host.partition(".")[0]]
    for name in candidates:
        if name in root.nodes:
            return name
    if root.nodes:
        msg = f"the host name {printable(host, 64)} is not among nodes: {', '.join(root.nodes)}; say which this is with node: or --node"
        raise UsageError(msg)
    for name in candidates:
        try:
            return check_node(name)
        except ValueError:
            continue
    msg = f"the host name {printable(host, 64)} cannot be a node's name; say node: in the config, or --node"
    raise UsageError(msg)
