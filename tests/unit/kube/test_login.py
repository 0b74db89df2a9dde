"""A credential program, played: what it prints, and who waits for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from edgekeeper.errors import MissingError
from edgekeeper.host import process
from edgekeeper.host.process import Finished
from edgekeeper.kube.login import Exec


def printing(monkeypatch: pytest.MonkeyPatch, *said: Any, takes_s: float = 0.0) -> list[int]:
    """Programs that print these in turn (a text as it is); one entry for each that was begun."""
    begun: list[int] = []
    answers = list(said)

    async def reply(*_: Any) -> tuple[Finished, str]:
        begun.append(1)
        await asyncio.sleep(takes_s)
        one = answers.pop(0) if len(answers) > 1 else answers[0]
        return Finished(0, one if isinstance(one, str) else json.dumps({"status": one})), ""

    monkeypatch.setattr(process, "reply", reply)
    return begun


@pytest.mark.parametrize(
    "said",
    [
        "",
        "SECRET",
        "[" * 100_000,
        {"token": None},
        {"token": 7},
        {"token": "SECRET\r\nX-Other: a"},
        {"token": "SECRET", "expirationTimestamp": 7},
        {"token": "SECRET", "expirationTimestamp": "9" * 30},
        {"clientCertificateData": "SECRET"},
    ],
)
def test_what_is_no_token_is_one_sentence_without_it(monkeypatch, said):
    printing(monkeypatch, said)
    with pytest.raises(MissingError) as told:
        asyncio.run(Exec("login").header())
    assert "login" in str(told.value)
    assert "SECRET" not in str(told.value)


def test_one_run_answers_for_all_and_who_cannot_wait_ends_it_for_nobody(monkeypatch):
    begun = printing(monkeypatch, {"token": "one"}, {"token": "two"}, takes_s=0.02)

    async def story() -> None:
        login = Exec("login")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await login.header()
        assert await asyncio.gather(*(login.header() for _ in range(5))) == ["Bearer one"] * 5
        assert len(begun) == 1
        assert await asyncio.gather(*(login.header(fresh=True) for _ in range(5))) == ["Bearer two"] * 5
        assert await login.header() == "Bearer two"
        assert len(begun) == 2

    asyncio.run(story())


def test_after_a_failure_it_is_asked_again(monkeypatch):
    printing(monkeypatch, "none", {"token": "one"})

    async def story() -> None:
        login = Exec("login")
        with pytest.raises(MissingError):
            await login.header()
        assert await login.header() == "Bearer one"

    asyncio.run(story())
