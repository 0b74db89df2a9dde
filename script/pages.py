"""The example report and its pictures; see script/pages."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser.chrome import Chrome  # noqa: E402 - after the path
from edgekeeper.report.pages import html, markdown, text  # noqa: E402
from edgekeeper.report.pages.json import document  # noqa: E402
from fakes import reports  # noqa: E402


def main(folder: Path) -> int:
    """Write all pages; pictures only where there is a browser."""
    folder.mkdir(parents=True, exist_ok=True)
    report = reports.demo()
    page = folder / "report.html"
    page.write_text(html.render(report), encoding="utf-8")
    (folder / "report.txt").write_text(text.render(report), encoding="utf-8")
    (folder / "report.md").write_text(markdown.render(report), encoding="utf-8")
    (folder / "report.json").write_text(json.dumps({"schema": 1, **document(report)}, indent=2) + "\n", encoding="utf-8")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        print(f"no pictures: there is no chromium here; the pages are in {folder}", file=sys.stderr)
        return 6
    with tempfile.TemporaryDirectory() as profile:
        chrome = Chrome(program, Path(profile))
        try:
            for width in (375, 1280):
                for scheme in ("light", "dark"):
                    chrome.open(page.resolve().as_uri(), width=width, scheme=scheme)
                    chrome.picture(folder / f"report-{width}-{scheme}.png")
            (folder / "report.pdf").write_bytes(chrome.paper())
        finally:
            chrome.close()
    print(f"{len(list(folder.iterdir()))} files in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
