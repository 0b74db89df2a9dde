"""The mesh's token: from a file, the environment, or OpenBao or Vault; read again with each pass, and never told to anybody."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from edgekeeper.config.expose import NetBird, Vault
from edgekeeper.config.secret import SecretSource
from edgekeeper.errors import MissingError, RefusedError, UsageError
from edgekeeper.host import secrets
from edgekeeper.host.files import read_secret
from edgekeeper.log import withhold
from edgekeeper.model.text import printable
from edgekeeper.ports import Clock

_LEASE_USED: Final = 2 / 3
"""A login is made anew when so much of its lease is over: it never ends between two calls."""


class Reader(Protocol):
    """Gives the token. ``why`` says that the source does not answer and an earlier token is given; "" when all is well."""

    why: str

    async def __call__(self) -> str:
        """The token as it is now. MissingError, UsageError or RefusedError say what to do."""


def reader(wanted: NetBird, clock: Clock) -> Reader:
    """The reader for what the config names; nothing is read yet."""
    if wanted.token_vault is not None:
        return VaultToken(wanted.token_vault, clock, timeout_s=wanted.timeout)
    return PlainToken(SecretSource(secret_file=wanted.token_file, secret_env=wanted.token_env))


class PlainToken:
    """From a file that only its owner may read, or from the environment."""

    def __init__(self, source: SecretSource) -> None:
        self.why = ""
        self._source = source

    async def __call__(self) -> str:
        """The token as it is now."""
        place = f"secret {self._source.secret_file}" if self._source.secret_file is not None else f"the environment variable {self._source.secret_env}"
        return _checked(secrets.read(self._source), place)


class VaultToken:
    """From the KV engine (version 2) of OpenBao or Vault, by the Kubernetes auth method.

    When it cannot be reached the last token is given again: it is most probably still good, and the mesh would say if not. When it says
    no (the role, the policy or the secret is gone), that is an error: somebody has taken the right away.
    """

    def __init__(self, vault: Vault, clock: Clock, *, timeout_s: float) -> None:
        self.why = ""
        self._vault = vault
        self._clock = clock
        self._timeout_s = timeout_s
        self._login: tuple[str, float] | None = None
        self._last: str | None = None

    async def __call__(self) -> str:
        """The token as it is now; within the deadline whatever the server does."""
        try:
            async with asyncio.timeout(self._timeout_s):
                value = await asyncio.to_thread(self._read)
        except (TimeoutError, MissingError) as err:
            why = f"{self._vault.url} did not answer in full within {self._timeout_s:g} s" if isinstance(err, TimeoutError) else str(err)
            if self._last is None:
                msg = f"{why}; without the token the mesh is not asked"
                raise MissingError(msg) from err
            self.why = f"{why}; the last token is used"
            return self._last
        self.why = ""
        self._last = value
        return value

    def _read(self) -> str:
        """In a thread: the client is not asynchronous."""
        hvac = _client_library()
        it = self._vault
        client = hvac.Client(url=it.url, token="", verify=it.ca_file or _system_cas(), timeout=self._timeout_s / 2, allow_redirects=False)
        client.session.trust_env = False
        try:
            return self._asked(client, hvac.exceptions)
        finally:
            client.adapter.close()

    def _asked(self, client: Any, failures: Any) -> str:
        it = self._vault
        if self._login is not None and self._clock.monotonic() < self._login[1]:
            client.token = self._login[0]
            try:
                return self._secret(client, failures)
            except RefusedError:  # revoked before its time, or the policy is another one by now
                self._login = None
                client.token = ""
        jwt = read_secret(it.jwt_file)
        said = self._tried(
            failures,
            lambda: client.auth.kubernetes.login(role=it.role, jwt=jwt, mount_point=it.auth_mount, use_token=False),
            f"does not let role {it.role} of auth/{it.auth_mount} in; check the role, its bound service account and namespace",
        )
        auth = _part(said, "auth")
        name, lease_s = auth.get("client_token"), auth.get("lease_duration", 0)
        if not isinstance(name, str) or not name or not isinstance(lease_s, (int, float)):
            msg = f"{it.url} answered the login without a token; check that auth/{it.auth_mount} is its Kubernetes auth method"
            raise RefusedError(msg)
        client.token = name
        self._login = (name, self._clock.monotonic() + lease_s * _LEASE_USED) if lease_s > 0 else None
        return self._secret(client, failures)

    def _secret(self, client: Any, failures: Any) -> str:
        it = self._vault
        place = f"{it.mount}/data/{it.path} of {it.url}"
        said = self._tried(
            failures,
            lambda: client.secrets.kv.v2.read_secret_version(path=it.path, mount_point=it.mount, raise_on_deleted_version=True),
            f"does not give {it.mount}/data/{it.path}; check that the secret is there (KV version 2) and that the policy of role {it.role} may read it",
        )
        value = _part(_part(said, "data"), "data").get(it.key)
        if not isinstance(value, str) or not value:
            msg = f"{place} has no text under {it.key}; write the token there, or name its key in expose.netbird.token_vault.key"
            raise UsageError(msg)
        withhold(value)
        return _checked(value, place)

    def _tried(self, failures: Any, act: Callable[[], Any], refused: str) -> Any:
        """What the server says; RefusedError when it says no, MissingError when it cannot be asked."""
        url = self._vault.url
        no = (failures.Forbidden, failures.Unauthorized, failures.InvalidPath, failures.InvalidRequest, failures.UnsupportedOperation)
        try:
            said = act()
        except no as err:
            msg = f"{url} {refused} ({printable(str(err), 200)})"
            raise RefusedError(msg) from err
        except (failures.VaultError, OSError, ValueError) as err:  # its HTTP library raises OSErrors
            msg = f"{url} did not answer: {type(err).__name__} {printable(str(err), 200)}".rstrip()
            raise MissingError(msg) from err
        if not isinstance(said, Mapping):  # the library hands on what is not JSON
            msg = f"{url} answered what is torn or not JSON"
            raise MissingError(msg)
        return said


def _client_library() -> Any:
    try:
        import hvac  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - an extra, and not a light one
    except ImportError as err:
        msg = "expose.netbird.token_vault needs the client of OpenBao and Vault; install edgekeeper[vault]"
        raise MissingError(msg) from err
    return hvac


def _system_cas() -> str | bool:
    """The system's CAs: the library would use a list of its own."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.capath or True


def _part(said: Any, key: str) -> Mapping[str, Any]:
    found = said.get(key) if isinstance(said, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _checked(value: str, place: str) -> str:
    """A token fit for a header."""
    if not value.isascii() or not value.isprintable() or " " in value.strip() or not value.strip():
        msg = f"{place} does not hold a token: one word of ASCII letters, digits and signs; it is not used"
        raise UsageError(msg)
    return value.strip()
