"""A stand-in for journalctl: follows a file of entries as journalctl follows the journal, told of new ones four times a second.

Where the file is says ``JOURNAL_STORE``. It knows the options that edgekeeper uses and refuses any other.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

PERIOD_S = 0.25


def main() -> None:
    """Print what follows the cursor, or was written since, for ever."""
    options = dict(word.partition("=")[::2] for word in sys.argv[1:])
    known = {"--follow", "--no-tail", "--output", "--output-fields", "--all", "--unit", "--after-cursor", "--since"}
    assert options.keys() <= known, options
    assert options.keys() >= {"--follow", "--no-tail", "--all"}, options
    assert options["--output"] == "json"
    store = Path(os.environ["JOURNAL_STORE"])
    since = float(options.get("--since", "@0")[1:]) * 1e6
    cursor = options.get("--after-cursor")
    passed = cursor is None
    while not store.exists():
        time.sleep(PERIOD_S)
    with store.open("rb") as file:
        while True:
            for text in iter(file.readline, b""):
                if not text.endswith(b"\n"):
                    file.seek(-len(text), os.SEEK_CUR)
                    break
                entry = json.loads(text)
                if passed and float(entry["__REALTIME_TIMESTAMP"]) >= since:
                    os.write(1, text)
                passed = passed or entry["__CURSOR"] == cursor
            time.sleep(PERIOD_S)


if __name__ == "__main__":
    main()
