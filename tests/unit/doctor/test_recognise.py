from __future__ import annotations

import pytest

from edgekeeper.doctor.recognise import is_keepalived, why_not


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("  \n\n", "empty"),
        ("# nothing\n", "only comments"),
        ("\0\1\2binary", "not text"),
        ("\ufffd" * 50 + "x", "not text"),
        ('newServer("192.0.2.1:53")\nsetLocal("0.0.0.0:53")\n', "dnsdist: its audit is not in this version"),
        ('binds:\n  - listen_address: "127.0.0.1:53"\nbackends: []\n', "dnsdist: its audit is not in this version"),
        ("apiVersion: v1\nkind: ConfigMap\ndata:\n  haproxy.cfg: |\n    global\n      daemon\n", "as a file of its own"),
        ("key: value\nother: 1\n", "YAML"),
        ('{"global": {}}', "JSON"),
        ("<html></html>", "HTML"),
        ("server {\n listen 80;\n}\n", "nginx"),
        ("hello world\n", "no section of HAProxy"),
        ("[Unit]\nDescription=HAProxy\n", "no section of HAProxy"),
    ],
)
def test_what_is_of_neither_is_named(text: str, word: str) -> None:
    why = why_not("f", text)
    assert why is not None
    assert word in why
    assert "\n" not in why


@pytest.mark.parametrize(
    "text",
    [
        "global\n maxconn 4\n",
        "\ufeffglobal\n daemon\n",
        "# a comment: with a colon\ndefaults\n mode http\n",
        "backend b\n server s 192.0.2.1:80\n",
        "listen x :80\r\n mode http\r\n",
        "# gr\ufffdn\nfrontend f\n bind :80\n",
        "{% if x %}\nfrontend f\n bind :80\n{% endif %}\n",
        "frontend f\n bind :80\n use_backend b if { path /x }\nbackend b\n",
        "program x\n command /bin/true\nlisten a\n",
    ],
)
def test_what_is_of_haproxy_passes(text: str) -> None:
    assert why_not("f", text) is None


@pytest.mark.parametrize(
    "text",
    ["vrrp_instance VI_1 {\n state MASTER\n}\n", "! a comment\nglobal_defs\n{\n}\n", "virtual_server 192.0.2.1 80 {\n}\n", "track_file f {\n}\n"],
)
def test_what_is_of_keepalived_is_told_apart(text: str) -> None:
    assert why_not("f", text) is None
    assert is_keepalived(text)
    assert not is_keepalived("# vrrp_instance {\nglobal\n daemon\n")
