"""``--format html`` and ``--report html:FILE`` as a user types them."""

from __future__ import annotations

import subprocess
import sys

import html5lib
import pytest

from tests.unit.cli.test_startup import CODE, HEAVY


def run(*words):
    command = [sys.executable, "-m", "aotidoctor", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def broken(tmp_path):
    path = tmp_path / "model.pt2"
    path.write_bytes(b"PK\x03\x04 this is cut")
    return path


def test_one_page_on_stdout_with_the_same_exit_status(broken):
    as_page, as_json = run("check", str(broken), "--format", "html"), run("check", str(broken), "--json")
    assert as_page.returncode == as_json.returncode == 1
    assert as_page.stdout.count("<!DOCTYPE html>") == 1
    page = html5lib.HTMLParser(strict=True).parse(as_page.stdout)
    assert "artifact-corrupt" in "".join(page.itertext())
    assert as_page.stderr == ""


def test_a_page_beside_what_is_printed(broken, tmp_path):
    target = tmp_path / "deep" / "report.html"
    done = run("check", str(broken), "-q", "--report", f"html:{target}")
    assert done.returncode == 1
    assert "PROBLEM" in done.stdout
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_what_cannot_be_examined_is_a_page_too():
    done = run("check", "/no/such.pt2", "--format", "html")
    assert "<!DOCTYPE html>" in done.stdout
    assert done.returncode == run("check", "/no/such.pt2", "--json").returncode


def test_only_the_template_engine_is_imported(broken):
    code = CODE.format(words=f"check {broken} --format html", heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.split() == ["jinja2"]
