"""Where a cluster's API is and who we are to it: a kubeconfig's context, or the service account of our pod."""

from __future__ import annotations

import base64
import binascii
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.config.yamltext import read_yaml
from edgekeeper.errors import ConfigError, MissingError, UsageError
from edgekeeper.host.files import read_text
from edgekeeper.kube.login import VERSIONS, Basic, Exec, Login, Nobody, Token, TokenFile
from edgekeeper.model.text import printable

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For a server without TLS: the client would load the system's CAs otherwise."""


@dataclass(frozen=True, slots=True)
class Pem:
    """Certificates or a key: in a file, or as text."""

    file: str = ""
    text: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.file or self.text)


@dataclass(frozen=True, slots=True)
class Access:
    """One server, the name that its certificate must show, whose signature is believed, and who we are."""

    server: str
    name: str
    login: Login
    namespace: str = "default"
    authority: Pem = Pem()
    certificate: Pem = Pem()
    key: Pem = Pem()
    believes_any: bool = False

    def context(self, server: str) -> ssl.SSLContext:
        """What TLS with one of the servers needs, its files read now (they may have been renewed); MissingError says which cannot be used."""
        if not server.startswith("https:"):
            return _PLAIN
        if self.believes_any:
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
        else:
            made = self._believing()
        if self.certificate:
            _show(made, self.certificate, self.key, self.server)
        return made

    def _believing(self) -> ssl.SSLContext:
        try:
            made = ssl.create_default_context(cafile=self.authority.file or None, cadata=self.authority.text or None)
        except (OSError, ValueError) as err:
            msg = f"the certificate authority of {self.server} {self.authority.file or 'in the kubeconfig'} cannot be used: {err}; the cluster is not asked"
            raise MissingError(msg) from err
        made.verify_flags &= ~ssl.VERIFY_X509_STRICT  # on from Python 3.13; authorities of older clusters have no key identifier, which it asks for
        return made


def _show(context: ssl.SSLContext, certificate: Pem, key: Pem, server: str) -> None:
    """Load our own certificate; OpenSSL reads files only, so what is text becomes one in memory."""
    made: list[int] = []
    try:
        context.load_cert_chain(_as_file(certificate, made), _as_file(key, made) if key else None, password="")
    except (OSError, ValueError) as err:
        msg = f"the client certificate for {server} {certificate.file or 'in the kubeconfig'} cannot be used: {err}; the cluster is not asked"
        raise MissingError(msg) from err
    finally:
        for handle in made:
            os.close(handle)


def _as_file(pem: Pem, made: list[int]) -> str:
    if pem.file:
        return pem.file
    made.append(os.memfd_create("edgekeeper"))
    os.write(made[-1], pem.text.encode())
    return f"/proc/self/fd/{made[-1]}"


def find(wanted: Kubernetes) -> Access:
    """The access that the config means; MissingError when there is none, UsageError when a kubeconfig cannot be used."""
    return of_kubeconfig(wanted.kubeconfig, wanted.context) if wanted.kubeconfig is not None else of_pod()


def of_pod(folder: str = ACCOUNT) -> Access:
    """The service account of the pod in which we run."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    account = Path(folder)
    if not host or not (account / "token").is_file():
        msg = "this is no pod of a cluster, and no kubeconfig is named; name one in kubernetes.kubeconfig"
        raise MissingError(msg)
    namespace = read_text(account / "namespace").strip() if (account / "namespace").is_file() else "default"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return Access(server, host, TokenFile(str(account / "token")), namespace, Pem(file=str(account / "ca.crt")))


def of_kubeconfig(path: str, context: str | None = None) -> Access:
    """The access of one context of a kubeconfig (its current one when none is named)."""
    file = Path(path).expanduser()
    reader = _Reader(file, _read(file))
    chosen = context if context is not None else reader.text(reader.whole, "current-context")
    if not chosen:
        msg = f"{file} names no current context; name one in kubernetes.context"
        raise UsageError(msg)
    about = reader.entry("contexts", "context", chosen)
    cluster = reader.entry("clusters", "cluster", reader.text(about, "cluster"))
    user_name = reader.text(about, "user")
    user = reader.entry("users", "user", user_name) if user_name else {}
    server = reader.text(cluster, "server").rstrip("/")
    host = _host(server)
    if not host:
        msg = f"{file}: the server of context {printable(chosen, 100)} is no address like https://192.0.2.1:6443; the cluster is not asked"
        raise UsageError(msg)
    return Access(
        server,
        reader.text(cluster, "tls-server-name") or host,
        reader.login(user),
        reader.text(about, "namespace") or "default",
        reader.pem(cluster, "certificate-authority"),
        reader.pem(user, "client-certificate"),
        reader.pem(user, "client-key"),
        believes_any=cluster.get("insecure-skip-tls-verify") is True,
    )


def _host(server: str) -> str:
    """The host of a server's URL; "" when it is none that can be asked."""
    try:
        parts = urlsplit(server)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return ""
    return host if parts.scheme in ("http", "https") and server.isprintable() and not parts.username else ""


def _read(file: Path) -> Mapping[str, Any]:
    try:
        whole = read_yaml(read_text(file, 2**20), str(file)).value
    except ConfigError as err:
        first = err.mistakes[0].text(str(file))
        msg = f"{first}; this kubeconfig is not used"
        raise UsageError(msg) from err
    if not isinstance(whole, dict):
        msg = f"{file} is not a kubeconfig; the cluster is not asked"
        raise UsageError(msg)
    return whole


class _Reader:
    """The parts of a kubeconfig, each with the name that a mistake is told by."""

    def __init__(self, file: Path, whole: Mapping[str, Any]) -> None:
        self.file = file
        self.whole = whole

    def text(self, part: Mapping[str, Any], name: str) -> str:
        """A text, "" when it is not there."""
        value = part.get(name)
        if value is None:
            return ""
        if not isinstance(value, str) or "\x00" in value:
            self._wrong(f"{name} is not a text")
        return str(value)

    def entry(self, group: str, kind: str, name: str) -> Mapping[str, Any]:
        """The entry with this name in one of the lists."""
        entries = self.whole.get(group)
        found = [entry.get(kind) for entry in entries or [] if isinstance(entry, dict) and entry.get("name") == name] if isinstance(entries, list) else []
        if not found:
            self._wrong(f"there is no {kind} {printable(name, 100) or '(without a name)'}")
        return found[0] if isinstance(found[0], dict) else {}

    def pem(self, part: Mapping[str, Any], name: str) -> Pem:
        """What stands as text (base64) in ``NAME-data``, or in the file NAME, relative to the kubeconfig."""
        data, file = self.text(part, f"{name}-data"), self.text(part, name)
        if data:
            try:
                return Pem(text=base64.b64decode(data, validate=True).decode("ascii"))
            except (binascii.Error, ValueError):
                self._wrong(f"{name}-data is not PEM in base64")
        return Pem(file=str(self.file.parent / file)) if file else Pem()

    def login(self, user: Mapping[str, Any]) -> Login:
        """Who we are: in kubectl's order."""
        if token_file := self.text(user, "tokenFile"):
            return TokenFile(str(self.file.parent / token_file))
        if token := self.text(user, "token"):
            return Token(token)
        if user.get("exec") is not None:
            return self._exec(user["exec"])
        if name := self.text(user, "username"):
            return Basic(name, self.text(user, "password"))
        if user.get("auth-provider") is not None:
            self._wrong("auth-provider is a way that Kubernetes has dropped; use an exec plugin or a token")
        return Nobody()

    def _exec(self, said: Any) -> Exec:
        if not isinstance(said, dict) or not self.text(said, "command"):
            self._wrong("exec names no command")
        version = self.text(said, "apiVersion")
        if version not in VERSIONS:
            self._wrong(f"exec speaks {printable(version, 100) or 'no version'}; {' and '.join(VERSIONS)} are understood")
        args, env = said.get("args") or [], said.get("env") or []
        if not isinstance(args, list) or not all(isinstance(arg, str) and "\x00" not in arg for arg in args):
            self._wrong("exec's args are not texts")
        if not isinstance(env, list) or not all(isinstance(pair, dict) for pair in env):
            self._wrong("exec's env is not a list of names and values")
        given = {self.text(pair, "name"): self.text(pair, "value") for pair in env}
        if any(not name or "=" in name for name in given):
            self._wrong("exec's env has a name that no variable can have")
        command = self.text(said, "command")
        if "/" in command:
            command = str(self.file.parent / command)
        return Exec(command, tuple(args), given, version)

    def _wrong(self, what: str) -> NoReturn:
        msg = f"{self.file}: {what}; this kubeconfig is not used"
        raise UsageError(msg)
