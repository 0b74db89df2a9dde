"""``edgekeeper run``: both roles in one process, on real engines, and one listener that speaks for them."""

from __future__ import annotations

import json
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .edge import Edge, dnsdist, engines, free_ports, until

HAPROXY = engines() / "testing" / "bin" / "haproxy"


class Both(Edge):
    """An edge with a service behind HAProxy too, whose binary is not there at first."""

    def __init__(self, folder: Path) -> None:
        self.lb_port, self.server = free_ports(2)
        self.haproxy = folder / "haproxy"
        lb = (
            f'lb:\n  services: [{{name: web, listen: "127.0.0.1:{self.lb_port}", members: {{static: ["127.0.0.1:{self.server}"]}}}}]\n'
            f"  engine: {{binary: {self.haproxy}}}\n"
        )
        super().__init__(folder, dnsdist(), extra=lb)

    def start(self, *words: str) -> Any:
        """Start ``edgekeeper run``."""
        return self.run(wrapper=(sys.executable, "-c", _RUN, *words))

    def says(self, name: str) -> dict[str, Any]:
        """What a role says; empty when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ops}/status", timeout=2) as answer:
                found: dict[str, Any] = json.load(answer)["roles"][name]
                return found
        except urllib.error.HTTPError as err:
            raise AssertionError(f"/status answers {err.code}\n{self.said()[-3000:]}") from err
        except OSError:
            return {}

    def pids(self) -> list[int]:
        """The engines' pids, once both run."""
        found = [self.says(name).get("engine", {}).get("pid") for name in ("dns", "lb")]
        return found if all(found) else []

    def alarmed(self) -> set[str]:
        """Roles that have an alarm about the config, or do not answer."""
        return {name for name in ("dns", "lb") if "config" in self.says(name).get("alarms", {"config": ""})}


_RUN = """
import sys
from edgekeeper.cli.main import main
sys.argv = ["edgekeeper", *(word for word in sys.argv[1:] if word != "dns")]  # `run` of all roles, not of one
main()
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Both]:
    both = Both(tmp_path)
    try:
        both.start_members()
        yield both
    finally:
        both.close()
        both.role = "lb"
        both.close()


@pytest.mark.engine
def test_an_engine_that_is_missing_takes_nobody_down_and_is_tried_again_until_it_is_there(made: Both) -> None:
    run = made.start()
    until(lambda: made.status().get("ready"), f"dns serves\n{made.said()[-2000:]}")
    lb = made.says("lb")
    assert lb["verdict"] == "bad"
    assert f"{made.haproxy} is not installed here" in lb["why"]
    assert not made.ready(), "readiness is that of all roles"
    made.haproxy.symlink_to(HAPROXY)
    pid = until(lambda: made.says("lb").get("engine", {}).get("pid"), "haproxy is tried again, and runs")
    assert "edgekeeper_lb_engine_up" in made.page("/metrics")
    assert "edgekeeper_dns_engine_up 1.0" in made.page("/metrics")
    run.send_signal(signal.SIGTERM)
    assert run.wait(20) == 0
    assert made.engines() == []
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.engine
def test_a_config_is_read_once_for_all_and_its_mistakes_are_an_alarm_of_each(made: Both) -> None:
    made.haproxy.symlink_to(HAPROXY)
    run = made.start()
    pids = until(made.pids, "both run")
    good = made.config.read_text()
    made.config.write_text(good + "nonsense: 1\n")
    run.send_signal(signal.SIGHUP)
    until(lambda: made.alarmed() == {"dns", "lb"}, "both tell it")
    made.config.write_text(good)
    run.send_signal(signal.SIGHUP)
    until(lambda: made.alarmed() == set(), "both are well again")
    second = made.start()
    assert second.wait(20) == 4
    run.send_signal(signal.SIGQUIT)
    assert run.wait(20) == 0
    run = made.start()
    until(lambda: made.says("dns").get("adopted") and made.says("lb").get("adopted"), "both are adopted")
    assert made.pids() == pids
    run.send_signal(signal.SIGTERM)
    assert run.wait(20) == 0
