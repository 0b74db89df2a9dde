"""``edgekeeper vip render|run|fifo|probe|rebalance|drain|undrain|owner``."""

from __future__ import annotations

from typing import Annotated

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.output import complain, say, say_block
from edgekeeper.cli.vip_owner import owner
from edgekeeper.errors import AbortedError, RefusedError

app = typer.Typer(help="keepalived under supervision: hand-overs that lose nothing, and the truth about who holds a VIP.")
app.command()(owner)

_MARGIN_S = 30.0
"""Beyond its own deadlines the supervisor gets so long to answer a command."""


@app.command()
def render(
    ctx: typer.Context,
    directory: Annotated[str | None, typer.Option("--dir", metavar="DIR", help="Write the files there instead of printing them.")] = None,
    ask: Annotated[bool, typer.Option("--check", help="Ask keepalived's own validator about it.")] = False,
) -> None:
    """Render keepalived.conf for this node (or --node); for kube-vip and MetalLB what their Service needs. Nothing that runs is touched."""
    import asyncio

    chosen = settings(ctx)
    loaded = chosen.load_role("vip")
    assert loaded.root.vip is not None  # noqa: S101 - load_role has checked it
    if loaded.root.vip.provider != "keepalived":
        from edgekeeper.vip.service import service_patch

        say_block(service_patch(loaded.root.vip.provider, loaded.root.vip.vips))
        return
    from edgekeeper.cli.rendered import show
    from edgekeeper.vip.preview import preview

    found = asyncio.run(preview(loaded.root, chosen.this_node(loaded), ask=ask))
    show(found, "keepalived", directory, asked=ask, heads=len(found.files) > 1)


@app.command()
def run(ctx: typer.Context) -> None:
    """Supervise keepalived until TERM (stops it, VIPs are handed over first) or QUIT (leaves it for the next supervisor); HUP reads the config again."""
    from edgekeeper.cli.run import LISTEN, maker, start

    start(settings(ctx), settings(ctx).load_role("vip"), {"vip": maker("vip")}, LISTEN["vip"])


@app.command()
def drain(
    ctx: typer.Context,
    vips: Annotated[list[str], typer.Argument(metavar="VIP...", help="Which VIPs.")],
    force: Annotated[bool, typer.Option("--force", help="Also when no peer says that it could take it.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="The same as undrain.")] = False,
) -> None:
    """Hand VIPs over to a peer before letting go of them, and do not take them again until undrain: for maintenance."""
    _ask(ctx, "undrain" if undo else "drain", vips, force=force)


@app.command()
def undrain(ctx: typer.Context, vips: Annotated[list[str], typer.Argument(metavar="VIP...", help="Which VIPs.")]) -> None:
    """This node may hold drained VIPs again."""
    _ask(ctx, "undrain", vips)


@app.command()
def rebalance(
    ctx: typer.Context,
    vip: Annotated[
        list[str] | None, typer.Option("--vip", metavar="VIP", help="This one, whoever has the higher priority; may be given several times.")
    ] = None,
) -> None:
    """Hand every VIP that this node holds to the live peer with the higher configured priority, one at a time, losing nothing."""
    _ask(ctx, "rebalance", vip or [])


def _ask(ctx: typer.Context, what: str, vips: list[str], *, force: bool = False) -> None:
    import asyncio
    from pathlib import Path

    from edgekeeper.host.control import ask
    from edgekeeper.vip.command import SOCKET

    root = settings(ctx).load_role("vip").root
    assert root.vip is not None  # noqa: S101 - load_role has checked it
    if root.vip.provider != "keepalived":
        from edgekeeper.vip.provider_kube import cannot_move

        raise RefusedError(cannot_move(root.vip.provider))
    deadline = _MARGIN_S + max(1, len(vips)) * 3 * root.vip.handover
    request = {"do": what, "vips": vips, "force": force}
    try:
        said = asyncio.run(ask(Path(root.run_dir) / "vip" / SOCKET, request, deadline))
    except KeyboardInterrupt:
        msg = f"interrupted; the supervisor carries on with the {what}, `edgekeeper vip owner` and `edgekeeper history --role vip` show how it ends"
        raise AbortedError(msg) from None
    code = 0
    for done in said.get("done", []):
        (say if done.get("ok") else complain)(str(done.get("why")))
        code = code or int(done.get("code") or 0)
    if code:
        raise typer.Exit(code)


@app.command()
def probe(
    vip: Annotated[str, typer.Option("--vip", metavar="NAME", help="The VIP whose service is asked.")] = "",
    dns: Annotated[str | None, typer.Option("--dns", metavar="HOST:PORT", help="The local DNS server.")] = None,
    qname: Annotated[str | None, typer.Option("--qname", metavar="NAME", help="The name that it is asked for.")] = None,
    qtype: Annotated[str, typer.Option("--qtype", metavar="TYPE", help="A, AAAA, TXT, SOA or NS.")] = "A",
    dnsdist_api: Annotated[str | None, typer.Option("--dnsdist-api", metavar="URL", help="dnsdist's API, to count usable servers.")] = None,
    dnsdist_api_key_file: Annotated[str | None, typer.Option("--dnsdist-api-key-file", metavar="FILE", help="Its key.")] = None,
    require_backends: Annotated[int, typer.Option("--require-backends", metavar="N", help="Fewer than this fail a node when a peer has more.")] = 0,
    tcp: Annotated[str | None, typer.Option("--tcp", metavar="HOST:PORT", help="Connect there.")] = None,
    http: Annotated[str | None, typer.Option("--http", metavar="URL", help="Ask this URL.")] = None,
    peers: Annotated[str | None, typer.Option("--peers", metavar="FILE", help="What the supervisor last heard of the peers.")] = None,
) -> None:
    """The track script: ask the local service once, answer within 900 ms, exit 0 when this node may hold the VIP and 1 when not."""
    from edgekeeper.vip.track import main

    words = ["--vip", vip]
    given = {"--dns": dns, "--qname": qname, "--dnsdist-api": dnsdist_api, "--dnsdist-api-key-file": dnsdist_api_key_file, "--tcp": tcp, "--http": http}
    for name, value in {**given, "--qtype": qtype, "--require-backends": str(require_backends), "--peers": peers}.items():
        words += [name, value] if value is not None else []
    raise typer.Exit(main(words))


@app.command()
def fifo(
    fifo: Annotated[str, typer.Argument(metavar="FIFO", help="keepalived's FIFO; it appends the path itself.")],
    node: Annotated[str, typer.Option("--node", metavar="NODE", help="This node's name.")] = "",
) -> None:
    """Read keepalived's transitions and keep vip-state.json beside the FIFO: keepalived starts this itself."""
    from edgekeeper.vip.fifo import main

    raise typer.Exit(main(["--node", node, fifo]))
