"""``edgekeeper expose plan|apply|run|adopt|relinquish|verify``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from edgekeeper.cli.context import settings
from edgekeeper.cli.output import Cell, Format, Tone, complain, say, say_json, table
from edgekeeper.errors import EdgekeeperError, RefusedError, StepFailedError, UsageError

if TYPE_CHECKING:
    from edgekeeper.config.load import Loaded
    from edgekeeper.expose.sync import Pass

app = typer.Typer(help="Hosts of the cluster, published through the mesh's reverse proxy in TLS passthrough; nothing is deleted on doubt.")

_TONES = {"create": Tone.GOOD, "return": Tone.GOOD, "delete": Tone.BAD, "disable": Tone.BAD}
_HOST = typer.Argument(metavar="HOST...", help="Hosts that are wanted.")
_OUTPUT = typer.Option("-o", "--output", help="text or json.")


@app.command()
def run(ctx: typer.Context) -> None:
    """Publish until TERM: a change of an Ingress is written within two seconds, and a pass is made now and then."""
    from edgekeeper.cli.run import LISTEN, maker, start

    start(settings(ctx), settings(ctx).load_role("expose"), {"expose": maker("expose")}, LISTEN["expose"])


@app.command()
def plan(
    ctx: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="As `apply --force` would do it.")] = False,
    output: Annotated[Format, _OUTPUT] = Format.TEXT,
) -> None:
    """What `apply` would do, and why; a read-only token is enough. Exit code 1 when there is something to do, 0 when there is not."""
    from edgekeeper.cli.expose_work import looked

    result = looked(ctx, _loaded(ctx), force=force)
    if output is Format.JSON:
        say_json(document(result))
    else:
        _show(result, done=False)
    if result.plan.actions or result.steps or result.plan.refused:
        raise typer.Exit(EdgekeeperError.exit_code)


@app.command()
def apply(
    ctx: typer.Context,
    force: Annotated[
        bool, typer.Option("--force", help="The brakes do not hold deletions back: a service is disabled now, a disabled one is deleted.")
    ] = False,
    output: Annotated[Format, _OUTPUT] = Format.TEXT,
) -> None:
    """One pass. What is not wanted any more is disabled, and deleted by a later one. Exit code 3 when deletions were refused, 5 when a write failed."""
    from edgekeeper.cli.expose_work import applied

    result = applied(ctx, _loaded(ctx), force=force)
    _end(result, output)


@app.command()
def adopt(
    ctx: typer.Context,
    hosts: Annotated[list[str], _HOST],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it is only shown.")] = False,
    output: Annotated[Format, _OUTPUT] = Format.TEXT,
) -> None:
    """Take over services that somebody else has made, for hosts that are wanted here. Their restrictions stay.

    A service in another mode than TLS is deleted and made anew, which interrupts its clients for a moment; when making it fails, the one
    before is put back.
    """
    from edgekeeper.cli.expose_work import applied, looked

    loaded, wanted = _loaded(ctx), _names(hosts)
    shown = looked(ctx, loaded, hosts=wanted, adopt=wanted)
    _all_there(shown, wanted)
    if not yes:
        _show(shown, done=False)
        say("nothing was done; --yes does it")
        return
    result = applied(ctx, loaded, hosts=wanted, adopt=wanted).only(wanted)
    _end(result, output)
    if result.plan.held:
        msg = f"{result.plan.held[0].host} was not taken over: {result.plan.held[0].why}"
        raise RefusedError(msg)


@app.command()
def relinquish(
    ctx: typer.Context,
    hosts: Annotated[list[str], typer.Argument(metavar="HOST...", help="Hosts whose services are ours.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it is only shown.")] = False,
) -> None:
    """Take the owner's mark off services: they stay as they are, and edgekeeper leaves them alone from now on."""
    from edgekeeper.cli.expose_work import relinquished

    wanted = _names(hosts)
    for host in relinquished(ctx, _loaded(ctx), wanted, really=yes):
        say(f"{host}: {'its name is now' if yes else 'its name would be'} {host!r}; it serves as before")
    say("as long as an object wants it, it is a conflict that is told there" if yes else "nothing was done; --yes does it")


@app.command()
def verify(
    ctx: typer.Context,
    hosts: Annotated[list[str] | None, typer.Argument(metavar="[HOST...]", help="Only these; all that are published when none is named.")] = None,
    echo: Annotated[str | None, typer.Option("--echo", metavar="PATH", help="A path whose answer holds the client's address; else prove.echo_path.")] = None,
    output: Annotated[Format, _OUTPUT] = Format.TEXT,
) -> None:
    """Prove the way from outside: each address of each host is asked with its name, and must show the backend's certificate.

    With an echo path the backend must also see this client's own address. Exit code 1 when a host is not proved.
    """
    from edgekeeper.cli.expose_work import verified

    if echo is not None and not (echo.startswith("/") and echo.isascii() and echo.isprintable() and " " not in echo):
        msg = f"--echo {echo!r} is not a path; write it like /whoami"
        raise UsageError(msg)
    found = verified(ctx, _loaded(ctx), _names(hosts or []), echo)
    if output is Format.JSON:
        say_json({"hosts": [{"host": one.host, "ok": one.ok, "why": one.text, "answers": [_answer(a) for a in one.answers]} for one in found]})
    else:
        rows = [(one.host, Cell("yes" if one.ok else "no", Tone.GOOD if one.ok else Tone.BAD), one.text) for one in found]
        table(("HOST", "PROVED", "WHY"), rows)
    if not all(one.ok for one in found):
        raise typer.Exit(EdgekeeperError.exit_code)


def _answer(one: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(one)  # type: ignore[call-overload, no-any-return]


def document(result: Pass) -> dict[str, object]:
    """A pass, or what one would do, as JSON."""
    made = result.plan
    states = result.states()
    return {
        "wanted": made.wanted,
        "managed": made.own,
        "foreign": made.foreign,
        "steps": list(result.steps),
        "actions": [{"kind": one.kind, "host": one.host, "why": one.why} for one in made.actions],
        "held": [{"host": one.host, "state": one.state, "why": one.why} for one in made.held],
        "failed": [{"host": one.action.host, "kind": one.kind, "why": one.why} for one in result.failed],
        "mesh": list(result.grounds),
        "targets": list(result.lost),
        "remarks": [{"object": one.origin.text, "reason": one.reason, "text": one.text} for one in made.remarks],
        "refused": made.refused,
        "memory": result.doubt,
        "hosts": {host: word for host, (word, _) in sorted(states.items())},
    }


def _show(result: Pass, *, done: bool) -> None:
    made = result.plan
    failed = {one.action.host: one.why for one in result.failed}
    rows: list[Sequence[str | Cell]] = [("mesh", "", step) for step in result.steps]
    for one in made.actions:
        kind = f"{one.kind} FAILED" if one.host in failed else one.kind
        rows.append((Cell(kind, Tone.BAD if one.host in failed else _TONES.get(one.kind, Tone.DOUBT)), one.host, failed.get(one.host, one.why)))
    rows += [(Cell("held", Tone.DOUBT), one.host, one.why) for one in made.held]
    if rows:
        table(("DO" if not done else "DONE", "HOST", "WHY"), rows)
    for remark in made.remarks:
        say(f"{remark.origin.text}: {remark.text}")
    if done:
        say(result.sentence())
    else:
        say(f"{made.wanted} wanted, {made.own} managed, {len(made.actions)} to do, {len(made.held)} held, {made.foreign} services of others")
    for text in (*result.grounds, *result.lost):
        complain(text)
    if result.doubt:
        complain(result.doubt)
    if made.refused:
        complain(made.refused)


def _end(result: Pass, output: Format) -> None:
    if output is Format.JSON:
        say_json(document(result))
    else:
        _show(result, done=True)
    if result.failed:
        msg = f"{len(result.failed)} of {len(result.outcomes)} writes were not done; do it again: what is done already stays done"
        raise StepFailedError(msg)
    lacking = [held for held in result.plan.held if held.state == "no-resource"]
    if lacking:
        msg = f"{len(lacking)} hosts have nothing in the mesh to stand on: {lacking[0].why}"
        raise StepFailedError(msg)
    if result.plan.refused:
        msg = f"deletions were refused: {result.plan.refused}"
        raise RefusedError(msg)


def _all_there(shown: Pass, hosts: frozenset[str]) -> None:
    unknown = sorted(hosts - shown.plan.wishes.keys())
    if unknown:
        msg = f"{', '.join(unknown)}: no object wants it, and only what is wanted can be adopted; give an Ingress with that host the label first"
        raise UsageError(msg)


def _names(hosts: Sequence[str]) -> frozenset[str]:
    from edgekeeper.expose.names import host_name

    out = set()
    for host in hosts:
        try:
            out.add(host_name(host))
        except ValueError as err:
            raise UsageError(str(err).partition(": ")[2]) from None
    return frozenset(out)


def _loaded(ctx: typer.Context) -> Loaded:
    return settings(ctx).load_role("expose")
