"""What comes before the bytes of a passed-through session: read as OpenSSL writes it, in any pieces, and never believed when it is not whole."""

from __future__ import annotations

import ssl

import pytest

from edgekeeper.lab import hello
from edgekeeper.lab.hello import Client, WrongHelloError


def client_hello(name: str | None) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


def test_the_name_is_read_as_soon_as_it_is_whole() -> None:
    whole = client_hello("Git.Home.example")
    assert hello.server_name(whole) == "git.home.example"
    assert hello.server_name(whole + b"more") == "git.home.example"
    assert all(hello.server_name(whole[:cut]) is None for cut in range(len(whole)))
    assert hello.server_name(client_hello(None)) == ""


def test_a_hello_in_two_records_is_one() -> None:
    whole = client_hello("git.home.example")
    body = whole[5:]
    parts = [b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (body[:90], body[90:])]
    assert hello.server_name(parts[0]) is None
    assert hello.server_name(b"".join(parts)) == "git.home.example"


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x28", b"\x16\x03\x01\x00\x04\x02\x00\x00\x00", b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03"],
)
def test_what_is_no_hello_is_refused(data: bytes) -> None:
    with pytest.raises(WrongHelloError):
        hello.server_name(data)


@pytest.mark.parametrize(
    ("client", "server"),
    [
        (Client("192.0.2.1", 1234), Client("198.51.100.2", 443)),
        (Client("2001:db8::1", 65_535), Client("2001:db8::2", 443)),
        (Client("192.0.2.1", 1), Client("2001:db8::2", 443)),
    ],
)
def test_a_header_tells_whom_it_speaks_for(client: Client, server: Client) -> None:
    header = hello.proxy_header(client, server)
    assert hello.is_proxied(header[:12]) is True
    assert hello.is_proxied(header[:11]) is None
    assert hello.header_length(header[:16]) == len(header)
    assert hello.proxied_client(header) == client


def test_what_is_no_header_is_none() -> None:
    assert hello.is_proxied(client_hello("a.example")) is False
    header = hello.proxy_header(Client("192.0.2.1", 1), Client("192.0.2.2", 2))
    assert hello.proxied_client(header[:12] + b"\x20" + header[13:]) is None, "LOCAL: the proxy's own question"
    for bad in (header[:-1], header + b"x", header[:15], b"\x16" + header[1:], header[:12] + b"\x11" + header[13:]):
        with pytest.raises(WrongHelloError):
            hello.proxied_client(bad)
