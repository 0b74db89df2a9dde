"""``edgekeeper init --pair``: the files of nodes that hear each other: configs, an authority and certificates, the keys of their adverts."""

from __future__ import annotations

import ipaddress
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from edgekeeper.cli.output import say
from edgekeeper.cli.starter import Among, starter
from edgekeeper.config.kinds import check_node
from edgekeeper.config.load import parse
from edgekeeper.config.vip import MOST_NODES
from edgekeeper.errors import ConfigError, MissingError, RefusedError, UsageError
from edgekeeper.host.authority import Authority
from edgekeeper.host.files import make_folder, write_text

DAYS = 3650
"""How long authority and certificates hold. Nothing renews them by itself, and when they end the nodes do not hear each other any more: longer is safer here."""

_KEY_BYTES = 32
_FOLDER = re.compile(r"(/[A-Za-z0-9_.+-]+)+")
_VIP4, _VIP6 = "192.0.2.53/24", "2001:db8::53/64"


def read_pair(text: str) -> dict[str, str]:
    """``edge-a=192.0.2.11,edge-b=192.0.2.12``: name to address, at least two, all of one family; UsageError says what is wrong."""
    nodes: dict[str, str] = {}
    for item in text.split(","):
        name, equals, address = item.strip().partition("=")
        try:
            if not equals or "%" in address:
                raise ValueError  # noqa: TRY301 - one sentence for both
            found = str(ipaddress.ip_address(address))
            check_node(name)
        except ValueError:
            msg = f"--pair: {item!r} is not NAME=ADDRESS, as in edge-a=192.0.2.11,edge-b=192.0.2.12; nothing was written"
            raise UsageError(msg) from None
        if name in nodes or found in nodes.values():
            msg = f"--pair: {name if name in nodes else found} is there twice; nothing was written"
            raise UsageError(msg)
        nodes[name] = found
    if not 2 <= len(nodes) <= MOST_NODES:
        msg = f"--pair names {len(nodes)} node{'' if len(nodes) == 1 else 's'}; give 2 to {MOST_NODES}. Nothing was written"
        raise UsageError(msg)
    if len({ipaddress.ip_address(address).version for address in nodes.values()}) > 1:
        msg = "--pair: some addresses are IPv4 and some IPv6; give one family (address6 in nodes: adds the other). Nothing was written"
        raise UsageError(msg)
    return nodes


def configs(nodes: Mapping[str, str], roles: Sequence[str], folder: str) -> tuple[dict[str, str], list[int]]:
    """The config of each node, and the VRIDs in them; UsageError when the addresses do not go together with what a starter names."""
    if not _FOLDER.fullmatch(folder):
        msg = f"--etc {folder!r} is not an absolute folder of letters, digits and . _ + -; nothing was written"
        raise UsageError(msg)
    out: dict[str, str] = {}
    vrids: set[int] = set()
    for node in nodes:
        text = starter(roles, Among(node, nodes, folder))
        if ":" in nodes[node]:
            text = text.replace(_VIP4, _VIP6)
        try:
            root = parse(text, f"{node}/edgekeeper.yaml").root
        except ConfigError as err:
            msg = f"{err.mistakes[0].what}; nothing was written, give other addresses"
            raise UsageError(msg) from err
        vrids |= {vip.vrid for vip in root.vip.vips} if root.vip else set()
        out[node] = text
    return out, sorted(vrids)


def write_pair(nodes: Mapping[str, str], roles: Sequence[str], target: str, folder: str) -> None:
    """Write everything below ``target`` at once, or nothing; RefusedError when anything is there. ``folder`` is where a node's files will lie."""
    texts, vrids = configs(nodes, roles, folder)
    place = Path(target)
    if place.exists() and not (place.is_dir() and not any(place.iterdir())):
        raise RefusedError(_there(target))
    authority = Authority(f"edgekeeper {' '.join(nodes)}"[:64], time.time(), DAYS)
    keys = {f"vrrp-{vrid}.key": f"hex:{secrets.token_hex(_KEY_BYTES)}\n" for vrid in vrids}  # as keepalived reads it: it would cut raw bytes at a NUL
    try:
        place.absolute().parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".edgekeeper-", dir=place.absolute().parent))
    except OSError as err:
        msg = f"{target} cannot be written: {err.strerror or err}; name another with --dir"
        raise MissingError(msg) from err
    try:
        write_text(made / "ca.key", authority.own.key)
        for node, address in nodes.items():
            own = make_folder(made / node)
            pair = authority.issue([node, address])
            write_text(own / "edgekeeper.yaml", texts[node], mode=0o644)
            write_text(own / "ops-ca.crt", authority.own.certificate, mode=0o644)
            write_text(own / "ops.crt", pair.certificate, mode=0o644)
            write_text(own / "ops.key", pair.key)
            for name, key in keys.items():
                write_text(own / name, key)
        made.rename(place)  # in one step, and only onto an empty folder
    except OSError as err:
        raise RefusedError(_there(target)) from err
    finally:
        shutil.rmtree(made, ignore_errors=True)
    _tell(nodes, target, folder, authority.until.isoformat())


def _there(target: str) -> str:
    return f"{target} is there already; nothing was written, name another with --dir"


def _tell(nodes: Mapping[str, str], target: str, folder: str, until: str) -> None:
    say(f"{target} is written: a folder for each node, with its own files and keys")
    say(*(f"  {node}: copy what is in {target}/{node} to {folder} on {address}, with its modes (cp -p, scp -p, rsync -p)" for node, address in nodes.items()))
    say(
        f"certificates and {target}/ca.key, which could sign more of them, hold until {until}; nothing that runs needs ca.key: move it offline",
        "addresses of VIPs and members in edgekeeper.yaml are examples: change them alike on all nodes, then on each: edgekeeper check",
    )
