"""The only HTTP client: a deadline on every call, no retry hidden inside, a limit on what is read."""

from __future__ import annotations

import asyncio
import functools
import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx2

from edgekeeper.errors import MissingError
from edgekeeper.host.watch import fingerprint

_LIMIT = 8 * 2**20
_UNUSED = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For plain HTTP: the client would load the system's CAs at each call, 17 ms of processor (measured 2026-11-30)."""


@functools.lru_cache(maxsize=8)
def _trust(ca_file: str | None, _: object) -> ssl.SSLContext:
    """The CAs of a file, or the system's, loaded once for each content of the file."""
    return ssl.create_default_context(cafile=ca_file)


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered."""

    status: int
    text: str


async def get(url: str, *, deadline_s: float, headers: Mapping[str, str] | None = None, ca_file: str | None = None) -> Response:
    """GET a URL within the deadline, from the first packet to the last byte; MissingError says why there was no answer.

    Proxies of the environment are not used: the edge's own machines are asked directly. A redirection
    is an answer and not followed, so that a token in ``headers`` goes to nobody else.
    """
    try:
        verify = _trust(ca_file, fingerprint(ca_file) if ca_file else None) if url.startswith("https") else _UNUSED
    except (OSError, ssl.SSLError) as err:
        msg = f"{ca_file} cannot be used as the CA of {url}: {err.strerror or err}; {url} is not asked"
        raise MissingError(msg) from err
    try:
        async with (
            asyncio.timeout(deadline_s),  # the client's own timeout begins anew with each byte
            httpx2.AsyncClient(timeout=deadline_s, verify=verify, trust_env=False) as client,
            client.stream("GET", url, headers=dict(headers or {})) as response,
        ):
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LIMIT:
                    msg = f"{url} answered more than {_LIMIT} bytes; the answer is not used"
                    raise MissingError(msg)
            return Response(response.status_code, body.decode("utf-8", "replace"))
    except TimeoutError as err:
        msg = f"{url} did not answer in full within {deadline_s:g} s"
        raise MissingError(msg) from err
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ssl.SSLError) as err:
        msg = f"{url} did not answer: {type(err).__name__} {err}".rstrip()
        raise MissingError(msg) from err
