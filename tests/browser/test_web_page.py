"""The page that examines dropped files, in a real browser: right answers, nothing sent, alive after bad input."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (pip install 'aotidoctor[test]')")
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from aotidoctor.cli.web import site
from aotidoctor.model.errors import CannotExamineError
from tests.browser.chromium import chromium, programs
from tests.browser.test_chromium import CONTRAST
from tests.e2e.foundry.place import cache_dir

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(programs() is None, reason="there is no chromium with chromedriver"),
]
LOGS = Path(__file__).parents[1] / "data" / "logs"
# Python is compiled anew in each browser: seconds on a quiet machine.
LONGEST_S = 240


@pytest.fixture(scope="module")
def server():
    folder = cache_dir() / "web-site"
    try:
        site.build_site(folder)
    except CannotExamineError as error:
        pytest.skip(f"Pyodide is not at hand: {error}")
    with site.SiteServer(folder, 0) as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        yield served
        served.shutdown()
        thread.join(LONGEST_S)


@pytest.fixture(scope="module")
def page(server, tmp_path_factory):
    try:
        with chromium(tmp_path_factory.mktemp("profile")) as opened:
            opened.driver.set_script_timeout(LONGEST_S)
            opened.open(server.address)
            until_ready(opened)
            yield opened
    except WebDriverException as error:
        pytest.skip(f"chromium does not start: {error.msg}")


def wait_for(page, script, *arguments):
    """Wait until JavaScript has a true result, and return it."""
    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        if found := page.ask(script, *arguments):
            return found
        time.sleep(0.1)
    raise AssertionError(page.ask("return document.body.innerText"))


def until_ready(page):
    wait_for(page, "return document.getElementById('state').textContent === 'Ready.'")


def answer(page, act):
    """What the page says after ``act``, once it has answered."""
    before = page.ask("return document.body.dataset.answers || ''")
    act()
    wait_for(page, "return (document.body.dataset.answers || '') !== arguments[0]", before)
    return page.ask("return document.getElementById('state').textContent")


def drop(page, *paths):
    """Begin anew and give files to the page, as its dialog does."""
    page.driver.find_element(By.ID, "clear").click() if page.ask(
        "return !document.getElementById('clear').hidden"
    ) else None
    field = page.driver.find_element(By.ID, "files")
    return answer(page, lambda: field.send_keys("\n".join(map(str, paths))))


def headline(page):
    """The first line of the report that is shown."""
    page.driver.switch_to.frame("report")
    try:
        return page.driver.find_element(By.TAG_NAME, "h1").text
    finally:
        page.driver.switch_to.default_content()


def command(page):
    return page.driver.find_element(By.ID, "command").text


@pytest.fixture
def example(server):
    return [server.folder / "example" / name for name in site.EXAMPLE]


def test_the_example_is_answered_and_nothing_is_sent(page, server):
    page.requests()
    assert answer(page, page.driver.find_element(By.ID, "example").click) == "A problem was found."
    asked = [one for one in page.requests() if not one.startswith(("data:", "about:", "blob:"))]
    assert asked == [f"{server.address}example/{name}" for name in site.EXAMPLE]
    assert "input-dtype" in headline(page)
    assert command(page) == "aotidoctor check embedding_cuda.pt2 --inputs int32_ids.json"
    assert page.complaints() == []


def test_what_is_dropped_is_never_sent_and_answered_as_on_the_command_line(page, example, tmp_path):
    page.requests()
    drop(page, *example)
    assert [one for one in page.requests() if not one.startswith(("data:", "about:", "blob:"))] == []
    here = page.ask("return new Promise(done => { const before = URL.createObjectURL; URL.createObjectURL = blob => "
                    "{ blob.text().then(done); URL.createObjectURL = before; return 'data:,'; }; "
                    "document.querySelector('[data-save=json]').click(); })")  # fmt: skip
    (tmp_path / "any.json").write_text(
        json.dumps(
            {"schema": "aotidoctor.host/1", "name": "any machine", "host": {"system": "Linux", "machine": "x86_64"}}
        )
    )
    for path in example:
        shutil.copy(path, tmp_path)
    words = ["check", example[0].name, "--inputs", example[1].name, "--host", "any.json", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "aotidoctor", *words],
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        cwd=tmp_path,
        check=False,
    )
    mine, theirs = json.loads(done.stdout), json.loads(here)
    for name in ("verdict", "diagnoses", "findings", "contract", "inputs"):
        assert theirs[name] == mine[name], name


def test_a_log_a_machine_and_wrong_drops(page, example, tmp_path):
    assert drop(page, LOGS / "cpp.log") == "A problem was found."
    assert command(page) == "aotidoctor classify cpp.log"
    (tmp_path / "garbage.pt2").write_bytes(b"PK\3\4" + bytes(range(256)) * 20)
    assert drop(page, tmp_path / "garbage.pt2") == "A problem was found."
    assert drop(page, example[1]) == "int32_ids.json has inputs: drop the package (.pt2) that they are for, too"
    shutil.copy(example[0], tmp_path / "other.pt2")
    assert "these are 2 packages" in drop(page, example[0], tmp_path / "other.pt2")
    # The next drop works; another machine is another answer.
    drop(page, example[0])
    assert page.ask("return document.getElementById('result').hidden") is False
    choice = Select(page.driver.find_element(By.ID, "machine"))
    answer(page, lambda: choice.select_by_value("aarch64"))
    assert "platform-mismatch" in headline(page)
    assert command(page) == "aotidoctor check embedding_cuda.pt2 --host aarch64"
    choice.select_by_value("")


def test_a_package_is_read_by_slices(page, tmp_path, example):
    big = tmp_path / "big.pt2"
    shutil.copy(example[0], big)
    with big.open("r+b") as stream:
        stream.truncate(1 << 30)
    before = page.ask("return performance.memory ? performance.memory.usedJSHeapSize : 0")
    drop(page, big)
    assert page.ask("return performance.memory ? performance.memory.usedJSHeapSize : 0") - before < 100 << 20


def test_keyboard_narrow_dark_and_hostile_names(page, server):
    name = "<img src=x onerror=alert(1)>.log"
    real_drop = (
        "const data = new DataTransfer(); data.items.add(new File([arguments[0]], arguments[1]));"
        "document.dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true}));"
    )
    log = (LOGS / "cpp.log").read_text()
    page.ask("document.getElementById('clear').click()")
    assert answer(page, lambda: page.ask(real_drop, log, name)) == "A problem was found."
    assert page.ask("return document.querySelectorAll('#list img').length") == 0
    assert name in page.driver.find_element(By.ID, "list").text
    seen = ["files"]
    page.ask("document.getElementById('files').focus()")
    for _ in range(12):
        ActionChains(page.driver).send_keys(Keys.TAB).perform()
        seen.append(page.ask("return document.activeElement.id || document.activeElement.dataset.save || ''"))
    assert {"files", "machine", "example", "copy", "html", "markdown", "json"} <= set(seen), seen
    page.open(server.address, width=400)
    until_ready(page)
    for scheme in ("light", "dark"):
        page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        assert page.ask("return document.documentElement.scrollWidth") <= 400
        assert page.ask(CONTRAST) == []


def test_the_command_prints_its_address_and_ends_when_it_is_asked_to(server):
    words = [sys.executable, "-m", "aotidoctor", "web"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(server.folder.parent / "web-cache")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            address = process.stdout.readline().strip()
            with urlopen(address, timeout=LONGEST_S) as page:
                assert b"Drop files here" in page.read()
            process.send_signal(signal.SIGINT)
            assert process.wait(LONGEST_S) == 128 + signal.SIGINT
        finally:
            process.kill()


def test_only_who_knows_the_address_gets_an_answer(server):
    root = server.address.removesuffix(f"{server.word}/")
    for path in (
        "",
        "index.html",
        f"{server.word}/../python.zip",
        f"{server.word}/../../../../etc/passwd",
        f"{server.word}/no",
    ):
        with pytest.raises(HTTPError) as refused:
            urlopen(root + path, timeout=LONGEST_S)
        assert refused.value.code == 404, path
    with urlopen(server.address, timeout=LONGEST_S) as page:
        assert page.headers["Content-Security-Policy"] == site.POLICY
