"""What ``dns render``, ``lb render`` and ``vip render`` say: notes, the files, and what the engine's validator said of them."""

from __future__ import annotations

from edgekeeper.cli.output import complain, say, say_block
from edgekeeper.errors import UsageError
from edgekeeper.host.files import make_folder, write_text
from edgekeeper.model.preview import Preview


def show(found: Preview, engine: str, directory: str | None, *, asked: bool, heads: bool = False, credentials: bool = False) -> None:
    """Print a preview, or write it into a folder. UsageError when the validator refused it.

    ``heads`` names each printed file above it; ``credentials`` says of written files that others must not read them.
    """
    for note in found.notes:
        complain(f"note: {note}")
    if directory is not None:
        _write(found, directory, credentials=credentials)
    else:
        for name, text in found.files.items():
            if heads:
                say(f"# {name}")
            say_block(text)
    if found.refusal is not None:
        msg = f"{found.refusal}; nothing was changed"
        raise UsageError(msg)
    if asked:
        complain(f"{engine} {found.version} accepts it")


def _write(found: Preview, directory: str, *, credentials: bool) -> None:
    folder = make_folder(directory, ours=False)
    for name, text in found.files.items():
        write_text(folder / name, text)
        if not credentials:
            say(f"{name} written to {directory}")
    if credentials:
        say(f"{', '.join(found.files)} written to {folder} (they hold credentials: mode 0600)")
