from __future__ import annotations

import time
from pathlib import Path

import pytest
from cryptography import x509

from edgekeeper.config.dns import Tls
from edgekeeper.dns import certificates
from edgekeeper.dns.certificates import CertificateStore
from edgekeeper.errors import EdgekeeperError, MissingError, UsageError
from edgekeeper.lab.certs import Authority

NOW = time.time()
DAY = 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> CertificateStore:
    return CertificateStore(tmp_path / "tls")


@pytest.fixture
def issued(tmp_path: Path) -> Path:
    return Authority(tmp_path).issue()


def tls(folder: Path) -> Tls:
    return Tls(dir=str(folder), dot=("127.0.0.1:853",))


def test_a_good_pair_is_copied_under_a_path_that_never_changes(store: CertificateStore, issued: Path, tmp_path: Path) -> None:
    assert store.last() is None
    taken = store.take(tls(issued), NOW)
    assert taken.certificate.chain == str(tmp_path / "tls" / "live" / "tls.crt")
    assert Path(taken.certificate.key).read_text() == (issued / "tls.key").read_text()
    assert Path(taken.certificate.key).stat().st_mode & 0o077 == 0
    assert taken.subject == "CN=dns.example"
    assert taken.ends == x509.load_pem_x509_certificate((issued / "tls.crt").read_bytes()).not_valid_after_utc.timestamp()
    assert store.last() == taken.certificate


def test_a_renewed_pair_has_the_same_path_and_another_digest_and_the_old_one_is_thrown_away(store: CertificateStore, issued: Path, tmp_path: Path) -> None:
    first = store.take(tls(issued), NOW).certificate
    (tmp_path / "two").mkdir()
    second = store.take(tls(Authority(tmp_path / "two").issue()), NOW).certificate
    assert (first.chain, first.key) == (second.chain, second.key)
    assert first.digest != second.digest
    assert len([p for p in (tmp_path / "tls").iterdir() if not p.is_symlink()]) == 1


def spoil(folder: Path, what: str) -> None:
    match what:
        case "missing key":
            (folder / "tls.key").unlink()
        case "garbage":
            (folder / "tls.crt").write_text("-----BEGIN NONSENSE-----")
        case "not text":
            (folder / "tls.crt").write_bytes(b"\xff\xfe")
        case "empty":
            (folder / "tls.crt").write_text("")
        case "too large":
            (folder / "tls.crt").write_text("x" * (certificates.LIMIT + 1))
        case "another key":
            (folder / "other").mkdir()
            (folder / "tls.key").write_text((Authority(folder / "other").issue() / "tls.key").read_text())


@pytest.mark.parametrize("what", ["missing key", "garbage", "not text", "empty", "too large", "another key"])
def test_a_bad_pair_is_refused_by_its_own_path_and_the_good_one_stays(store: CertificateStore, issued: Path, tmp_path: Path, what: str) -> None:
    good = store.take(tls(issued), NOW).certificate
    kept = Path(good.chain).read_text()
    (tmp_path / "two").mkdir()
    bad = Authority(tmp_path / "two").issue()
    spoil(bad, what)
    with pytest.raises((UsageError, MissingError)) as caught:
        store.take(tls(bad), NOW)
    assert str(bad) in str(caught.value)
    assert str(tmp_path / "tls") not in str(caught.value)
    assert store.last() == good
    assert Path(good.chain).read_text() == kept
    assert len([p for p in (tmp_path / "tls").iterdir() if not p.is_symlink()]) == 1


def test_an_expired_pair_is_refused_but_what_is_live_already_stays(store: CertificateStore, issued: Path) -> None:
    taken = store.take(tls(issued), NOW)
    good = taken.certificate
    with pytest.raises(UsageError, match="expired on"):
        store.take(tls(issued), taken.ends + 1)
    assert store.last() == good
    assert Path(good.chain).exists()


def test_a_pair_that_is_not_valid_yet_is_refused(store: CertificateStore, issued: Path) -> None:
    with pytest.raises(UsageError, match="valid only from"):
        store.take(tls(issued), NOW - 1000 * DAY)


def test_a_disk_that_is_full_at_the_last_step_keeps_the_pair_before(
    store: CertificateStore, issued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = store.take(tls(issued), NOW).certificate

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(certificates, "point", full)
    (tmp_path / "two").mkdir()
    with pytest.raises(EdgekeeperError, match="No space left"):
        store.take(tls(Authority(tmp_path / "two").issue()), NOW)
    assert store.last() == good
