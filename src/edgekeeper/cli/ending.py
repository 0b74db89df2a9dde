"""How a command line that went wrong is told: one line, never a traceback."""

from __future__ import annotations

import errno

from edgekeeper.cli.output import complain, complain_block
from edgekeeper.errors import ConfigError, EdgekeeperError, StepFailedError

_MOST_MISTAKES = 200


def tell(err: EdgekeeperError, *, debug: bool) -> int:
    """Print an error as its line (a config's as one line a mistake); with --debug, where it came from. Returns its exit code."""
    try:
        if debug:
            import traceback

            complain_block("".join(traceback.format_exception(err.__cause__ if isinstance(err, _InternalError) else err)))
        if isinstance(err, ConfigError):
            complain(*(mistake.text(err.file) for mistake in err.mistakes[:_MOST_MISTAKES]))
            if len(err.mistakes) > _MOST_MISTAKES:
                complain(f"edgekeeper: {err.file} has {len(err.mistakes) - _MOST_MISTAKES} more mistakes; mend these first")
        else:
            complain(f"edgekeeper: {err}")
    except OSError:
        pass  # nobody listens any more; the exit code still tells
    return err.exit_code


class _InternalError(StepFailedError):
    """A mistake of edgekeeper's own; its cause has the place."""


def internal(err: Exception) -> EdgekeeperError:
    """The error that tells a person about a mistake of ours; a disk that is full is none."""
    if isinstance(err, OSError) and err.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StepFailedError("there is no space left where the output goes; what was written of it is not whole")
    told = _InternalError(f"internal error, {type(err).__name__}: {err}; nothing more was done. --debug shows where, please report it")
    told.__cause__ = err
    return told
