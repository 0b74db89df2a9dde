from __future__ import annotations

import asyncio
import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from edgekeeper.config.kubernetes import Kubernetes
from edgekeeper.errors import MissingError, UsageError
from edgekeeper.kube.access import Access, Pem, find, of_kubeconfig, of_pod
from edgekeeper.kube.client import connect
from edgekeeper.kube.login import Basic, Exec, Login, Nobody, Token, TokenFile

SERVER = "https://192.0.2.1:6443"
MARK = "c2VjcmV0"


def header(login: Login) -> str:
    return asyncio.run(login.header())


def entry(kind: str, **about: Any) -> list[dict[str, Any]]:
    return [{"name": "one", kind: about}]


def config(user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": entry("cluster", **(cluster if cluster is not None else {"server": SERVER})),
        "users": entry("user", **(user or {})),
        "contexts": entry("context", cluster="one", user="one", namespace="shop"),
        "current-context": "one",
        **more,
    }


def read(tmp_path: Path, what: Any, context: str | None = None) -> Access:
    file = tmp_path / "kubeconfig"
    file.write_text(what if isinstance(what, str) else json.dumps(what))
    return of_kubeconfig(str(file), context)


def test_a_kubeconfig_says_where_and_who(tmp_path):
    access = read(tmp_path, config({"token": "abc"}, {"server": SERVER + "/", "tls-server-name": "api.example", "certificate-authority": "ca.crt"}))
    assert (access.server, access.name, access.namespace) == (SERVER, "api.example", "shop")
    assert access.authority == Pem(file=str(tmp_path / "ca.crt"))
    assert header(access.login) == "Bearer abc"
    assert not access.believes_any
    assert read(tmp_path, config()).name == "192.0.2.1"


def test_yaml_as_people_write_it_and_another_context(tmp_path):
    text = """
apiVersion: v1
clusters:
- name: a
  cluster: {server: "https://[2001:db8::1]:6443"}
- {name: b, cluster: {server: http://127.0.0.1:8080, insecure-skip-tls-verify: true}}
contexts:
- {name: a, context: {cluster: a, user: u}}
- {name: b, context: {cluster: b}}
current-context: a
users:
- {name: u, user: {username: me, password: pw}}
"""
    assert (read(tmp_path, text).name, header(read(tmp_path, text).login)) == ("2001:db8::1", "Basic bWU6cHc=")
    other = read(tmp_path, text, "b")
    assert (other.server, other.namespace, other.believes_any) == ("http://127.0.0.1:8080", "default", True)
    assert isinstance(other.login, Nobody)


@pytest.mark.parametrize(
    ("user", "kind"),
    [
        ({"tokenFile": "t", "token": "x"}, TokenFile),
        ({"token": "x", "exec": {}}, Token),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "aws"}, "username": "u"}, Exec),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws", "args": ["a"], "env": [{"name": "N", "value": "v"}]}}, Exec),
        ({"username": "u", "password": "p"}, Basic),
        ({}, Nobody),
    ],
)
def test_ways_to_say_who_asks(tmp_path, user, kind):
    assert type(read(tmp_path, config(user)).login) is kind


def test_a_program_is_looked_for_beside_the_kubeconfig_when_it_is_a_path(tmp_path):
    def command(said: str) -> str:
        login = read(tmp_path, config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": said}})).login
        assert isinstance(login, Exec)
        return login.command

    assert [command(said) for said in ("aws", "./login", "/bin/login")] == ["aws", str(tmp_path / "login"), "/bin/login"]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("clusters: [", "kubeconfig:1"),
        ("just text", "is not a kubeconfig"),
        (config(**{"current-context": None}), "names no current context"),
        (config(**{"current-context": "two"}), "there is no context two"),
        (config(contexts=entry("context", cluster="two")), "there is no cluster two"),
        (config(contexts=entry("context", cluster="one", user="two")), "there is no user two"),
        (config(clusters="no list"), "there is no cluster one"),
        (config(cluster={"server": "ftp://192.0.2.1"}), "is no address like https://"),
        (config(cluster={"server": "https://192.0.2.1:port"}), "is no address like https://"),
        (config(cluster={"server": "https://me:word@192.0.2.1"}), "is no address like https://"),
        (config(cluster={}), "is no address like https://"),
        (config({"token": 7}), "token is not a text"),
        (config({"client-certificate-data": "%%"}), "client-certificate-data is not PEM"),
        (config({"auth-provider": {"name": "gcp"}}), "auth-provider"),
        (config({"exec": {"command": "a", "apiVersion": "client.authentication.k8s.io/v1alpha1"}}), "v1alpha1"),
        (config({"exec": {"apiVersion": "client.authentication.k8s.io/v1"}}), "names no command"),
        (config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "a", "args": "x"}}), "args"),
        (config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "a", "env": [1]}}), "env"),
        (config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "a", "env": [{"name": "A=B", "value": "x"}]}}), "no variable can have"),
        (config({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "a", "args": ["a\0b"]}}), "args"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_told_with_its_file(tmp_path, what, words):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, what)
    assert words in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "not used" in str(caught.value) or "not asked" in str(caught.value) or "name one" in str(caught.value)


def test_a_kubeconfig_that_is_not_there_is_missing(tmp_path):
    with pytest.raises(MissingError, match="cannot be read"):
        connect(Kubernetes(kubeconfig=str(tmp_path / "none")))


def test_outside_a_cluster_a_kubeconfig_is_asked_for(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(MissingError, match=r"kubernetes\.kubeconfig"):
        find(Kubernetes())


@pytest.mark.parametrize(("host", "server"), [("192.0.2.1", "https://192.0.2.1:443"), ("2001:db8::1", "https://[2001:db8::1]:443")])
def test_in_a_pod_its_service_account_asks(monkeypatch, tmp_path, host, server):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("first")
    (tmp_path / "namespace").write_text("edge")
    access = of_pod(str(tmp_path))
    assert (access.server, access.name, access.namespace, access.authority.file) == (server, host, "edge", str(tmp_path / "ca.crt"))
    assert header(access.login) == "Bearer first"
    (tmp_path / "token").write_text("rotated\n")
    assert header(access.login) == "Bearer rotated"


@pytest.mark.parametrize("text", ["", "two\nlines", "esc\x1b[2J", "umlaut-ü"])
def test_a_token_is_one_line_and_never_repeated_in_an_error(tmp_path, text):
    (tmp_path / "token").write_text(text)
    with pytest.raises(MissingError) as caught:
        header(TokenFile(str(tmp_path / "token")))
    assert not text or text not in str(caught.value)


def test_no_secret_is_in_what_is_written_of_an_access(tmp_path):
    pem = base64.b64encode(MARK.encode()).decode()
    for user in ({"token": MARK}, {"username": "u", "password": MARK}, {"client-certificate-data": pem, "client-key-data": pem}):
        assert MARK not in repr(read(tmp_path, config(user)))


def test_an_authority_that_cannot_be_used_is_named(tmp_path):
    with pytest.raises(MissingError, match=r"certificate authority of https://192\.0\.2\.1:6443"):
        read(tmp_path, config(cluster={"server": SERVER, "certificate-authority": "none.crt"})).context(SERVER)
    with pytest.raises(MissingError, match="in the kubeconfig"):
        read(tmp_path, config(cluster={"server": SERVER, "certificate-authority-data": base64.b64encode(b"no pem").decode()})).context(SERVER)


def test_any_certificate_is_believed_only_when_it_was_said(tmp_path):
    strict = read(tmp_path, config()).context(SERVER)
    lax = read(tmp_path, config(cluster={"server": SERVER, "insecure-skip-tls-verify": True})).context(SERVER)
    assert (strict.verify_mode, strict.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert (lax.verify_mode, lax.check_hostname) == (ssl.CERT_NONE, False)
