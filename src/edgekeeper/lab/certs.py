"""Certificates for the lab: one authority a drill, as many leaves as it asks for, for ``dns.example`` unless another name is given."""

from __future__ import annotations

import os
import time
from pathlib import Path

from edgekeeper.host import authority

SERVER_NAME = "dns.example"
_DAYS = 90


class Authority:
    """A certificate authority that lives as long as the drill; ``ca.crt`` is what the client trusts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._leaves = 0
        self._authority = authority.Authority("drill authority", time.time(), _DAYS)
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_text(self._authority.own.certificate)

    def issue(self, name_of: str = SERVER_NAME) -> Path:
        """A folder with a fresh ``tls.crt`` and ``tls.key`` for one name."""
        self._leaves += 1
        pair = self._authority.issue([name_of])
        folder = self._folder / f"leaf-{self._leaves}"
        folder.mkdir(mode=0o700)
        (folder / "tls.crt").write_text(pair.certificate)
        key_file = folder / "tls.key"
        key_file.touch(mode=0o600)
        key_file.write_text(pair.key)
        return folder

    def mount(self) -> Path:
        """A folder laid out as Kubernetes mounts a Secret: files that point through ``..data``; see ``rotate``."""
        folder = self._folder / "secret"
        folder.mkdir(mode=0o700)
        (folder / "..data").symlink_to(self.issue())
        for name in ("tls.crt", "tls.key"):
            (folder / name).symlink_to(f"..data/{name}")
        return folder

    def rotate(self, folder: Path) -> None:
        """Swap certificate and key together, by one rename of ``..data``."""
        new = folder / "..new"
        new.symlink_to(self.issue())
        os.replace(new, folder / "..data")  # noqa: PTH105 - Path.replace would follow nothing, but says less
