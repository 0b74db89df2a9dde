"""Secrets stand beside the config, never in it: ``*_file`` or ``*_env``. Values, no reading."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from edgekeeper.config.kinds import Path, Section


class SecretSource(Section):
    """Where a secret is: a file that only its owner may read, or an environment variable."""

    secret_file: Path | None = Field(None, description="File with the secret, readable by its owner only.")
    secret_env: str | None = Field(None, description="Environment variable with the secret.", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.secret_file is None) == (self.secret_env is None):
            msg = "give exactly one of secret_file and secret_env"
            raise ValueError(msg)
        return self
