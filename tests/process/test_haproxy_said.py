"""What real HAProxies say is what the parsers are tested with: ``--update-golden`` writes their answers to ``tests/golden/haproxy/said``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgekeeper.engines.haproxy.sess import SessionReader
from edgekeeper.engines.haproxy.stats import format_servers_state, parse_info, parse_proc, parse_servers_state, parse_stat

from .edge import until
from .proxied import Proxied

SAID = Path(__file__).resolve().parents[1] / "golden" / "haproxy" / "said"


@pytest.mark.engine
@pytest.mark.parametrize("version", ["2.6", "3.0", "3.2"])
def test_what_a_real_one_says_is_read_in_full(tmp_path: Path, version: str, request: pytest.FixtureRequest) -> None:
    with Proxied(tmp_path, version) as made:
        made.open(3, 1, 2)
        made.reload()
        old = made.workers()[1]
        made.open(3, 2, 1)
        made.sick("cp1")
        made.ask("set server api/cp3 state maint")
        until(lambda: made.status("cp3") == "MAINT", "cp3 is in MAINT")
        said = {
            "show_stat": made.ask("show stat"),
            "show_stat_user": made.ask("show stat", str(tmp_path / "user.sock")),
            "show_info": made.ask("show info"),
            "show_sess": made.ask("show sess"),
            "show_sess_all": made.ask("show sess all"),
            "show_sess_old": made.ask(f"@!{old} show sess", made.master),
            "show_sess_all_old": made.ask(f"@!{old} show sess all", made.master),
            "show_servers_state": made.ask("show servers state"),
            "show_proc": made.ask("show proc", made.master),
        }
        if request.config.getoption("--update-golden"):
            for name, text in said.items():
                (SAID / version).mkdir(parents=True, exist_ok=True)
                (SAID / version / f"{name}.txt").write_text(re.sub(r"(?m)^node: .*$", "node: edge-a", text.rstrip("\n") + "\n"))

        stats = parse_stat(said["show_stat"])
        assert [(s.name, s.down, s.maint, s.scur) for s in stats.servers] == [
            ("api/cp1", True, False, 1),
            ("api/cp2", False, False, 1),
            ("api/cp3", True, True, 1),
        ]
        assert stats.skipped == 0
        assert [(f.name, f.scur, f.mode) for f in stats.frontends] == [("api", 3, "tcp")]
        assert [s.status for s in parse_stat(said["show_stat_user"]).servers] == [s.status for s in stats.servers]
        info = parse_info(said["show_info"])
        assert (info.pid, info.version.startswith(version), info.stopping) == (made.workers()[0], True, False)
        assert [(w.pid, w.current, w.reloads) for w in parse_proc(said["show_proc"])] == [(info.pid, True, 0), (old, False, 1)]
        for short, long, net in (("show_sess", "show_sess_all", 2), ("show_sess_old", "show_sess_all_old", 1)):
            first, second = SessionReader(), SessionReader()
            brief = [*first.feed(said[short]), *first.end()]
            full = [*second.feed(said[long]), *second.end()]
            assert {(s.id, s.source, s.backend, s.server) for s in brief} == {(s.id, s.source, s.backend, s.server) for s in full}
            assert {s.server for s in full} == {"cp1", "cp2", "cp3"}
            ports = {f"127.0.0.1:{server.order('ports')[0]}": name for name, server in made.servers.items()}
            assert all(ports[s.address] == s.server for s in full)
            assert all((s.bytes_in, s.bytes_out) == (1, 3) for s in full)
            assert all(s.source_host.startswith(f"127.0.{net}.") and s.frontend == "api" for s in brief)
            assert all(s.age_s is not None and s.age_s < 30 for s in (*brief, *full))


@pytest.mark.engine
@pytest.mark.parametrize("version", ["2.6", "3.0", "3.2"])
def test_a_state_that_was_written_from_what_was_read_is_loaded_again(tmp_path: Path, version: str) -> None:
    with Proxied(tmp_path, version) as made:
        made.sick("cp1")
        rows = parse_servers_state(made.ask("show servers state"))
        assert [(row.server, row.op_state, row.admin_state) for row in rows] == [("cp1", 0, 0), ("cp2", 2, 0), ("cp3", 2, 0)]
        (tmp_path / "state").write_text(format_servers_state(rows))
        # Checks so slow that only the file can say who is DOWN.
        text = (tmp_path / "haproxy.cfg").read_text().replace("inter 200ms", "inter 60s").replace("global\n", f"global\n  server-state-file {tmp_path}/state\n")
        (tmp_path / "haproxy.cfg").write_text(text.replace("defaults\n", "defaults\n  load-server-state-from-file global\n"))
        before = made.pid()
        made.process.send_signal(12)
        until(lambda: made.pid() not in (0, before), "the new worker answers")
        assert [made.status(name).split()[0] for name in ("cp1", "cp2", "cp3")] == ["DOWN", "UP", "UP"]
