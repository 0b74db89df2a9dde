"""What a stranger can do to the publishing of others: a backend's certificate, an object's text, a namespace that is going."""

import asyncio
import contextlib
import datetime as dt
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from edgekeeper.expose.proof import prove


def strange_certificate(folder) -> ssl.SSLContext:
    """A server's context with a certificate that OpenSSL takes and that cannot be parsed in full."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a.example")])
    begin = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
    made = made.not_valid_before(begin).not_valid_after(begin + dt.timedelta(days=30))
    names = b"\x30\x0f\xa3\x02\x30\x00\x82\x09a.example"  # an X.400 address, and a name
    made = made.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier("2.5.29.17"), names), critical=False)
    raw = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    (folder / "crt.pem").write_text(ssl.DER_cert_to_PEM_cert(raw))
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt.pem", folder / "key.pem")
    return context


def test_a_certificate_that_no_library_reads_is_an_answer_and_no_end_of_the_proofs(tmp_path):
    async def greet(reader, writer) -> None:
        with contextlib.suppress(OSError):
            await reader.read(1)
        writer.close()

    async def story():
        server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=strange_certificate(tmp_path))
        async with server:
            return await prove("a.example", [f"127.0.0.1:{server.sockets[0].getsockname()[1]}"], 443, 3.0)

    proof = asyncio.run(story())
    assert not proof.ok
    assert "cannot be read" in proof.text
