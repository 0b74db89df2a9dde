"""An engine of a few lines, with failures on demand: what supervision must survive, without a real engine.

``engine.py check FOLDER`` judges ``FOLDER/engine.json``; ``engine.py run FOLDER`` serves it: DNS over
UDP on each address of ``listen`` and on a private port, and one line of JSON for each line on a control
port, guarded by a token. ``script`` in that file says what goes wrong:

``check``: ``refuse``, ``silent``, ``die``, ``hang``, ``complain`` (an error, though it exits 0)
``start``: ``crash`` (at once), ``mute`` (TCP is accepted, nothing is answered), ``slow`` (half a second)
``crash_after``: seconds until it ends by itself
``stop``: ``ignore`` (TERM does nothing)
``live``: ``refuse`` (members cannot be changed), ``die`` (it ends in the middle of the change)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any


def check(config: dict[str, Any]) -> int:
    how = config["script"].get("check")
    match how:
        case "refuse":
            print("error: line 3 is wrong", flush=True)  # noqa: T201 - this is how an engine speaks
            return 1
        case "silent":
            return 0
        case "die":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(60)
        case "complain":
            print("error: a listener is unknown, it is left out\nConfiguration OK", flush=True)  # noqa: T201
            return 0
    print("Configuration OK", flush=True)  # noqa: T201
    return 0


def dns(listen: str, *, shared: bool) -> None:
    """Answer every question NOERROR."""
    host, _, port = listen.rpartition(":")
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if shared:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind((host, int(port)))

    def serve() -> None:
        while True:
            with contextlib.suppress(OSError):
                asked, who = server.recvfrom(4096)
                server.sendto(asked[:2] + b"\x81\x80" + asked[4:], who)

    threading.Thread(target=serve, daemon=True).start()


def control(config: dict[str, Any], door: socket.socket) -> None:
    """``{"token", "set"?}`` in, ``{"pid", "members"}`` out."""
    script, members = config["script"], list(config["members"])
    while True:
        with contextlib.suppress(OSError, ValueError, KeyError):
            client, _ = door.accept()
            with client, client.makefile("rw") as lines:
                asked = json.loads(lines.readline())
                if asked["token"] != config["token"] or script.get("start") == "mute":
                    time.sleep(60)
                if "set" in asked and script.get("live") == "die":
                    os._exit(9)
                if "set" in asked and script.get("live") != "refuse":
                    members = asked["set"]
                lines.write(json.dumps({"pid": os.getpid(), "members": members}) + "\n")


def run(config: dict[str, Any]) -> int:
    script = config["script"]
    if script.get("start") == "crash":
        print("fatal: cannot start", flush=True)  # noqa: T201
        return 3
    if script.get("stop") == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    door = socket.create_server(("127.0.0.1", config["control"]))
    if script.get("start") == "slow":
        time.sleep(0.5)
    for listen in config["listen"]:
        dns(listen, shared=True)
    dns(f"127.0.0.1:{config['private']}", shared=False)
    print(f"serving {config['listen']}", flush=True)  # noqa: T201
    if "crash_after" in script:
        threading.Timer(float(script["crash_after"]), os._exit, (7,)).start()
    control(config, door)
    return 0


if __name__ == "__main__":
    found = json.loads((Path(sys.argv[2]) / "engine.json").read_text())
    sys.exit({"check": check, "run": run}[sys.argv[1]](found))
