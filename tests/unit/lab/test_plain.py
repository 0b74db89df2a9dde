"""The baseline's config."""

from __future__ import annotations

from edgekeeper.lab.plain import Plain, config


def test_what_a_user_would_write() -> None:
    text = config(Plain(listen=("198.51.100.1:53",), members=(("ns-a", "192.0.2.21:5353"),)))
    assert 'setServerPolicy(chashed)\naddLocal("198.51.100.1:53")\n' in text
    assert 'newServer({address="192.0.2.21:5353", name="ns-a", weight=100, checkName="health.example."' in text
    assert "controlSocket" not in text


def test_tls_reuseport_and_console() -> None:
    text = config(
        Plain(
            listen=("198.51.100.1:53",), members=(), dot=("198.51.100.1:853",), certificate="/c", key="/k", reuseport=True, console_port=5199, console_key="x"
        )
    )
    assert 'addTLSLocal("198.51.100.1:853", "/c", "/k", {provider="openssl", reusePort=true})' in text
    assert 'addLocal("198.51.100.1:53", {reusePort=true})' in text
    assert 'controlSocket("127.0.0.1:5199")' in text


def test_names_cannot_leave_their_quotes() -> None:
    text = config(Plain(listen=(), members=(('a"})os.exit()--\n\\', "192.0.2.21:5353"),)))
    assert 'name="a\\"})os.exit()--\\n\\\\"' in text
    assert len(text.splitlines()) == 4
