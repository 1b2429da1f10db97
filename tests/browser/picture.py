"""The pictures of the README and docs: ``make picture``, or ``python -m tests.browser.picture REPORT FLEET PAGE``.

That of a fleet is the page of ``aotidoctor demo --fleet``. The report is a real one: ``aotidoctor run model.pt2 --inputs int32_ids.pt --report html:report.html`` on the model that
``aotidoctor demo`` compiles.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from aotidoctor.cli.web import site
from aotidoctor.commands import demo
from tests.browser.chromium import chromium

WIDTH = 1040
# The picture ends below this section.
LAST = "contract"


def real_report(folder: Path) -> Path:
    """A report of a run of the demo's model on inputs of another dtype than it was compiled for."""
    for item in demo.prepare_demo(os.environ, lambda _event: None).iterdir():
        (folder / item.name).symlink_to(item)
    program = str(Path(sys.executable).with_name("aotidoctor"))
    command = [program, "run", "model.pt2", "--inputs", "int32_ids.pt", "--report", "html:report.html"]
    subprocess.run(command, cwd=folder, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "report.html"


def real_fleet(folder: Path) -> Path:
    """The page of the demo's fleet."""
    program = str(Path(sys.executable).with_name("aotidoctor"))
    subprocess.run([program, "demo", "--fleet", "-q"], check=True, stdout=subprocess.DEVNULL)
    page = folder / "fleet.html"
    page.write_bytes((demo.fleet_folder(os.environ) / demo.PAGE).read_bytes())
    return page


def picture(report: Path, profile: Path, last: str = LAST) -> bytes:
    """The page as PNG, down to the end of the section ``last``."""
    with chromium(profile) as page:
        page.open(report, width=WIDTH)
        end = page.ask(f"return document.getElementById('{last}').getBoundingClientRect().bottom + window.scrollY")
        return page.picture(WIDTH, round(float(str(end))) + 20)


def page_for_files(profile: Path) -> bytes:
    """The page of ``aotidoctor web`` with the answer to its example."""
    from tests.browser import test_web_page as steps

    with tempfile.TemporaryDirectory() as folder:
        site.build_site(Path(folder))
        with site.SiteServer(Path(folder), 0) as server, chromium(profile) as page:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            page.open(server.address, width=WIDTH, height=900)
            steps.until_ready(page)
            steps.answer(page, lambda: page.ask("document.getElementById('example').click()"))
            steps.headline(page)
            png = page.picture(WIDTH, 900)
            server.shutdown()
    return png


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        report = picture(real_report(here), here / "profile")
        fleet = picture(real_fleet(here), here / "profile", "K1")
        dropped = page_for_files(here / "profile")
    Path(sys.argv[1]).write_bytes(report)
    Path(sys.argv[2]).write_bytes(fleet)
    Path(sys.argv[3]).write_bytes(dropped)
