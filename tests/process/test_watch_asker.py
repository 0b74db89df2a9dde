"""Rounds of questions against real servers on loopback: who hangs, refuses, has another certificate, or answers well."""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.process.answering import free_port, served

from edgekeeper.lab.certs import Authority
from edgekeeper.probe.target import parse
from edgekeeper.watch.asker import TargetsAsker
from edgekeeper.watch.seams import Answer


def within(work: Coroutine[Any, Any, Any], most_s: float = 10.0) -> Any:
    return asyncio.run(asyncio.wait_for(work, most_s))


def ask(*urls: str, **words: Any) -> Coroutine[Any, Any, Answer]:
    return TargetsAsker([parse(url) for url in urls], **words).ask()


def test_a_server_that_answers_is_well_one_that_says_503_or_refuses_is_not() -> None:
    async def work() -> None:
        async with served() as web:
            assert (await ask(f"http://127.0.0.1:{web.port}/health?deep=1")).well
            assert web.heads[0].startswith("GET /health?deep=1 HTTP/1.1\r\n")
            web.status = 503
            assert (await ask(f"http://127.0.0.1:{web.port}/")).why == f"http://127.0.0.1:{web.port}/: HTTP 503"
        port = free_port()
        assert await ask(f"tcp://127.0.0.1:{port}") == Answer(False, f"tcp://127.0.0.1:{port}: refused", pytest.approx(time.monotonic(), abs=1))

    within(work())


def test_what_could_not_be_asked_says_nothing_of_the_service() -> None:
    async def work() -> None:
        nowhere, refused = "http://nowhere.invalid/", f"tcp://127.0.0.1:{free_port()}"
        assert not (await ask(nowhere, timeout_s=5)).known
        assert (await ask(nowhere, refused, timeout_s=5)).known
        assert not (await ask(command=["/nowhere/probe"])).known
        assert (await ask(command=["false"])).known

    within(work())


def test_each_round_is_a_fresh_connection() -> None:
    async def work() -> None:
        async with served() as web:
            asker = TargetsAsker([parse(f"http://127.0.0.1:{web.port}/")])
            assert [(await asker.ask()).well for _ in range(3)] == [True] * 3
            assert web.connections == 3

    within(work())


def test_one_that_hangs_is_given_its_time_and_no_more() -> None:
    async def work() -> None:
        async with served(hangs=True) as wedged:
            for url in (f"http://127.0.0.1:{wedged.port}/", f"tls://127.0.0.1:{wedged.port}?verify=no", f"https://127.0.0.1:{wedged.port}/"):
                began = time.monotonic()
                answer = await ask(url, timeout_s=0.3)
                assert not answer.well
                assert answer.why.startswith(f"{url}: timed out")
                assert 0.3 <= time.monotonic() - began < 1.5
                assert began <= answer.asked < began + 0.3

    within(work())


def test_the_certificate_that_is_expected_must_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    leaf = authority.issue("git.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf / "tls.crt", leaf / "tls.key")

    async def work() -> None:
        async with served(tls=context) as web, served() as plain:
            base = f"tls://127.0.0.1:{web.port}"
            assert not (await ask(f"{base}?sni=git.example")).well
            monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
            assert (await ask(f"{base}?sni=git.example")).well
            assert "git.example" not in (await ask(f"{base}?sni=other.example")).why.partition("?sni=")[2].partition(":")[0]
            assert "TLS: " in (await ask(f"{base}?sni=other.example")).why
            assert (await ask(f"{base}?sni=other.example&verify=no")).well
            assert not (await ask(f"tls://127.0.0.1:{plain.port}?verify=no")).well

    within(work())


def test_the_answer_that_decides_ends_the_round() -> None:
    async def work() -> None:
        async with served() as web, served(hangs=True) as wedged:
            good, hung, refused = f"tcp://127.0.0.1:{web.port}", f"http://127.0.0.1:{wedged.port}/", f"tcp://127.0.0.1:{free_port()}"
            began = time.monotonic()
            assert (await ask(hung, good, refused, need="any", timeout_s=5)).well
            answer = await ask(hung, good, refused, need="all", timeout_s=5)
            assert time.monotonic() - began < 2
            assert answer.why == f"{refused}: refused (not all of 3 answered well)"
            answer = await ask(hung, refused, need="any", timeout_s=0.2)
            assert not answer.well
            assert hung in answer.why
            assert refused in answer.why

    within(work())


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_no_connection_and_no_task_is_left_behind() -> None:
    async def work() -> None:
        async with served() as web, served(hangs=True) as wedged:
            asker = TargetsAsker([parse(f"http://127.0.0.1:{port}/") for port in (web.port, wedged.port, wedged.port)], timeout_s=5)
            before = descriptors()
            for _ in range(20):
                assert (await asker.ask()).well
            await asyncio.sleep(0.2)
            assert descriptors() <= before + wedged.connections  # the hung server's own ends
            assert not [task for task in asyncio.all_tasks() if "_target" in repr(task)]

    within(work())


def test_a_round_that_is_cancelled_leaves_no_connection() -> None:
    async def work() -> None:
        async with served(hangs=True) as wedged:
            before = descriptors()
            task = asyncio.create_task(TargetsAsker([parse(f"http://127.0.0.1:{wedged.port}/")], timeout_s=30).ask())
            await asyncio.sleep(0.2)
            assert (wedged.connections, descriptors()) == (1, before + 2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(0)
            assert task.cancelled()
            assert descriptors() == before + 1

    within(work())


def test_a_command_says_well_by_its_exit() -> None:
    def run(code: str, **words: Any) -> Answer:
        found = within(TargetsAsker([], command=(sys.executable, "-c", code), **words).ask())
        assert isinstance(found, Answer)
        return found

    assert run("").well
    failed = run("print(); print('no route\\x1b[2J'); raise SystemExit(3)", timeout_s=5)
    assert not failed.well
    assert failed.why.endswith("exit 3: no route\\x1b[2J")
    began = time.monotonic()
    hung = run("import time; time.sleep(60)", timeout_s=0.3)
    assert time.monotonic() - began < 2
    assert hung.why == f"{sys.executable}: did not end within 0.3 s; it was killed"
    missing = within(TargetsAsker([], command=("/nonexistent/probe",)).ask())
    assert missing.why == "/nonexistent/probe: cannot be run: No such file or directory"


def test_a_command_and_a_target_are_one_round() -> None:
    async def work() -> None:
        async with served() as web:
            target = parse(f"tcp://127.0.0.1:{web.port}")
            assert (await TargetsAsker([target], command=("false",), need="any").ask()).well
            assert (await TargetsAsker([target], command=("false",), need="all").ask()).why == "false: exit 1 (not all of 2 answered well)"

    within(work())
