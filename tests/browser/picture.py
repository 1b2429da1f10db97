"""The picture of a report for the README: ``make picture``, or ``python -m tests.browser.picture .github/report.png``.

The report is a real one: ``aotidoctor run model.pt2 --inputs int32_ids.pt --report html:report.html`` on the model that
``aotidoctor demo`` compiles.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from aotidoctor.commands import demo
from tests.browser.chromium import chromium

WIDTH = 1040
# The picture ends below this section.
LAST = "contract"


def real_report(folder: Path) -> Path:
    """A report of a run of the demo's model on inputs of another dtype than it was compiled for."""
    for item in demo.prepare(os.environ, lambda _event: None).iterdir():
        (folder / item.name).symlink_to(item)
    program = str(Path(sys.executable).with_name("aotidoctor"))
    command = [program, "run", "model.pt2", "--inputs", "int32_ids.pt", "--report", "html:report.html"]
    subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "report.html"


def picture(report: Path, profile: Path) -> bytes:
    """The report as PNG, down to the end of its contract."""
    with chromium(profile) as page:
        page.open(report, width=WIDTH)
        end = page.ask(f"return document.getElementById('{LAST}').getBoundingClientRect().bottom + window.scrollY")
        return page.picture(WIDTH, round(float(str(end))) + 20)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        made = picture(real_report(Path(scratch)), Path(scratch, "profile"))
    Path(sys.argv[1]).write_bytes(made)
