"""What every command is given: the options that stand before it, and ways to what they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgekeeper.errors import UsageError

if TYPE_CHECKING:
    import typer

    from edgekeeper.config.load import Loaded


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of the root command."""

    config: str | None = None
    node: str | None = None
    log_format: str = "json"
    debug: bool = False

    def load(self, path: str | None = None) -> Loaded:
        """The config: ``path`` if given, else --config, else the usual places; ConfigError with all mistakes."""
        from edgekeeper.config.load import find, load

        return load(find(path or self.config))

    def load_if_there(self) -> Loaded | None:
        """The config, for a command that needs none: None when nobody names one and the usual places hold none."""
        from pathlib import Path

        from edgekeeper.config.load import PLACES

        if self.config is None and not any(Path(place).exists() for place in PLACES):
            return None
        return self.load()

    def load_role(self, role: str) -> Loaded:
        """The config, which must have the section of this role; UsageError when it has not."""
        loaded = self.load()
        if getattr(loaded.root, role) is None:
            msg = f"{loaded.file} has no {role} section; add one, `edgekeeper init --role {role}` shows how"
            raise UsageError(msg)
        return loaded

    def this_node(self, loaded: Loaded) -> str:
        """This node's name by --node, the config or the host name; UsageError when it is none of ``nodes:``."""
        from edgekeeper.config.load import select_node

        return select_node(loaded.root, self.node)

    def start_logging(self, node: str = "") -> None:
        """Log to standard error in the format that was asked for, with the node's name on each line."""
        from edgekeeper import log

        log.setup(self.log_format, node=node, debug=self.debug)


def settings(ctx: typer.Context) -> Settings:
    """The root options of the running command line."""
    found = ctx.find_root().obj
    return found if isinstance(found, Settings) else Settings()
