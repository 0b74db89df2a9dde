"""A real browser: a missing one is a failure, not a skip."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.chrome import Chrome
from tests.fakes import reports

from edgekeeper.report.pages import html


@pytest.fixture(scope="session")
def chrome(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.fail("there is no chromium; script/bootstrap tests installs it", pytrace=False)
    browser = Chrome(program, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html.render(reports.demo()), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "hostile.html"
    path.write_text(html.render(reports.hostile()), encoding="utf-8")
    return path
