"""The HTML report in a real browser: what it shows, what it asks for, what it complains about."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (pip install 'aotidoctor[test]')")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from aotidoctor.reports.html import html_report as html_
from tests.browser.chromium import programs
from tests.optional import optional
from tests.unit.reports import builders
from tests.unit.reports.test_html import hostile, located

optional("matplotlib")
# matplotlib needs it, too.
Image = optional("PIL.Image")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        programs() is None, reason="there is no chromium with chromedriver (apt install chromium-driver)"
    ),
]

LOUD = "</script><script>alert(1)</script><img src=http://127.0.0.1:9/x onerror=alert(1)>"
REPORTS = {
    "named": builders.misleading,
    "located": located,
    "unknown": builders.unknown,
    "healthy": builders.healthy,
    "inspected": builders.inspected,
    "environment": builders.environment,
    "hostile": lambda: hostile(LOUD),
}
# Text of less contrast than 4.5 with what is behind it.
CONTRAST = """
const parse = text => text.match(/[\\d.]+/g).map(Number);
const over = (top, under) => { const a = top.length > 3 ? top[3] : 1; return [0, 1, 2].map(i => top[i] * a + under[i] * (1 - a)); };
const light = rgb => { const [r, g, b] = rgb.map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
  return .2126 * r + .7152 * g + .0722 * b; };
const ground = node => { const seen = []; for (; node; node = node.parentElement) seen.push(parse(getComputedStyle(node).backgroundColor));
  return seen.reverse().reduce((under, top) => over(top, under), [255, 255, 255]); };
document.querySelectorAll("details").forEach(item => item.open = true);
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), poor = [];
while (walker.nextNode()) {
  const node = walker.currentNode.parentElement, style = getComputedStyle(node);
  if (!walker.currentNode.data.trim() || !node.getClientRects().length) continue;
  const under = ground(node), ink = over(parse(node.closest("svg") ? style.fill : style.color), under);
  const [a, b] = [light(ink), light(under)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
  if (ratio < 4.5) poor.push([node.outerHTML.slice(0, 80), ratio.toFixed(2)]);
}
return poor;
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, make in REPORTS.items():
        (folder / f"{name}.html").write_text(html_.render_html(make()), encoding="utf-8")
    return folder


@pytest.fixture
def keep(tmp_path):
    """Where pictures are left: ``AOTIDOCTOR_SCREENSHOTS`` if it is set."""
    folder = Path(os.environ.get("AOTIDOCTOR_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def colors(png):
    """How many colours there are in a picture, and how much of it is of the commonest."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    found = image.getcolors(image.width * image.height)
    return len(found), max(count for count, _ in found) / (image.width * image.height)


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_renders_and_asks_for_nothing(browser, pages, keep, name, dark):
    path = pages / f"{name}.html"
    browser.open(path, dark=dark)
    assert browser.complaints() == []
    asked = [address for address in browser.requests() if not address.startswith("data:image/svg+xml,")]
    assert asked == [path.as_uri()]
    assert browser.ask("return document.querySelector('h1').getBoundingClientRect().height") > 10
    png = browser.picture(1280, 900)
    (keep / f"{name}-{'dark' if dark else 'light'}.png").write_bytes(png)
    count, commonest = colors(png)
    assert count > 30
    assert commonest < 0.98
    ground = browser.ask("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(15, 19, 24)" if dark else "rgb(255, 255, 255)")


def test_a_page_that_asks_for_something_would_be_seen(browser, pages, tmp_path):
    """The control of the test above, and of the policy in the head."""
    wanted = "http://127.0.0.1:9/x.png"
    path = tmp_path / "asks.html"
    path.write_text(f'<!DOCTYPE html><title>x</title><img src="{wanted}">')
    browser.open(path)
    assert wanted in browser.requests()
    assert browser.complaints()
    page = (pages / "named.html").read_text(encoding="utf-8")
    path.write_text(page.replace("</main>", f'<img src="{wanted}"><script>document.title = "owned"</script></main>'))
    browser.open(path)
    refused = " ".join(browser.complaints())
    assert "Content Security Policy" in refused
    assert browser.driver.title != "owned"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["named", "located", "healthy"])
def test_all_text_can_be_read(browser, pages, name, dark):
    browser.open(pages / f"{name}.html", dark=dark)
    assert browser.ask(CONTRAST) == []


def test_poor_contrast_would_be_seen(browser, tmp_path):
    path = tmp_path / "poor.html"
    path.write_text('<!DOCTYPE html><title>x</title><p style="color: #999">poor</p><p>good</p>')
    browser.open(path)
    ((element, ratio),) = browser.ask(CONTRAST)
    assert "poor" in element
    assert float(ratio) < 4.5


def test_the_first_screen_holds_the_answer(browser, pages):
    browser.open(pages / "named.html", width=1280, height=720)
    bottoms = browser.ask(
        "return [...document.querySelectorAll('header dd')].map(dd => dd.getBoundingClientRect().bottom)"
    )
    assert bottoms == sorted(bottoms)
    assert bottoms[-1] < 720


@pytest.mark.parametrize("name", REPORTS)
def test_a_phone_need_not_scroll_sideways(browser, pages, keep, name):
    browser.open(pages / f"{name}.html", width=390, height=844)
    browser.ask("document.querySelectorAll('details').forEach(item => item.open = true)")
    assert browser.ask("return document.documentElement.scrollWidth") <= 390
    (keep / f"{name}-phone.png").write_bytes(browser.picture(390, 844))


def test_on_paper_everything_is_open_and_light(browser, pages, keep):
    browser.open(pages / "located.html", dark=True, media="print")
    assert browser.ask("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    hidden = browser.ask(
        "return [...document.querySelectorAll('.inside')].filter(e => !e.checkVisibility({contentVisibilityAuto: true})).length"
    )
    assert hidden == 0
    assert browser.ask("return getComputedStyle(document.querySelector('nav')).display") == "none"
    paper = browser.paper()
    (keep / "located.pdf").write_bytes(paper)
    assert paper.startswith(b"%PDF-")
    assert len(paper) > 10_000
    browser.open(pages / "located.html")
    folded = browser.ask("return [...document.querySelectorAll('.inside')].filter(e => !e.checkVisibility()).length")
    assert folded > 0  # on the screen they are closed: the first assertion could have failed


def test_links_lead_to_what_shows_it(browser, pages):
    browser.open(pages / "named.html", height=400)
    browser.driver.find_element(By.CSS_SELECTOR, "header a[href='#E2']").click()
    browser.driver.execute_async_script("setTimeout(arguments[0], 900)")  # it scrolls there
    top = browser.ask("return document.getElementById('E2').getBoundingClientRect().top")
    assert 0 <= top < 400
    assert browser.ask("return document.querySelector(':target').id") == "E2"


def test_a_click_selects_the_whole_command(browser, pages):
    browser.open(pages / "named.html")
    browser.driver.find_element(By.CSS_SELECTOR, "header pre.copy").click()
    assert browser.ask("return getSelection().toString()").strip() == "kwargs['ids'] = kwargs['ids'].to(torch.int64)"


def test_the_keyboard_reaches_the_findings_first(browser, pages):
    browser.open(pages / "named.html")
    browser.driver.switch_to.active_element.send_keys(Keys.TAB)
    first = browser.driver.switch_to.active_element
    assert first.get_attribute("href").endswith("#main")
    assert first.rect["width"] > 50  # it can be seen now


@pytest.mark.torch
def test_a_real_report(browser, tmp_path, packages_of_the_demo):
    from tests.browser.picture import real_report

    report = real_report(tmp_path)
    browser.open(report)
    assert browser.complaints() == []
    assert "input-dtype" in browser.driver.find_element(By.TAG_NAME, "h1").text
    assert browser.driver.find_element(By.CSS_SELECTOR, "#contract mark").text.endswith("int64")


@pytest.fixture
def packages_of_the_demo(monkeypatch):
    """The demo's packages, compiled once per machine, where all tests keep theirs."""
    if shutil.which("g++") is None:
        pytest.skip("there is no g++ to compile the demo's packages with")
    pytest.importorskip("torch", reason="torch is not installed")
    from tests.e2e.foundry.place import cache_dir

    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_dir()))


@pytest.mark.parametrize("name", [".github/report.png", "docs/fleet.png", "docs/page.png"])
def test_the_pictures_of_the_readme(name):
    path = Path(__file__).parents[2] / name
    assert path.stat().st_size < 300_000
    with Image.open(path) as picture:
        assert picture.format == "PNG"
        assert 900 <= picture.width <= 1400
        assert picture.height <= 1600
