"""The page of a fleet in a real browser: 10,000 items, sorted and filtered, by keyboard too, and whole without its script."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (pip install 'aotidoctor[test]')")
pytest.importorskip("pandas", reason="pandas is not installed (pip install 'aotidoctor[fleet]')")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from aotidoctor.fleet.summary.summarize import summarize
from aotidoctor.reports.fleet import fleet_files as fleet_page
from tests.browser.chromium import programs
from tests.unit.fleet.fleets import CAUSES, failing, healthy, write

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        programs() is None, reason="there is no chromium with chromedriver (apt install chromium-driver)"
    ),
]
LOUD = "</script><script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>"
SHOWN = "return [...document.querySelectorAll('#items-table tbody tr')].filter(row => !row.hidden).map(row => row.cells[{}].textContent)"


def made(folder, count):
    """So many items, a tenth of them failing over five days; one name wants to be markup."""
    results = [failing(LOUD, "input-stride", LOUD, started="2026-09-01T10:00:00Z")]
    for number in range(1, count):
        name, host = f"models/{number:05}.pt2", f"host-{number % 4}"
        more = {"host": host, "seconds": number / 1000, "labels": {"team": "abc"[number % 3]}}
        if number % 10:
            results.append(healthy(name, **more))
        else:
            day = 1 + number // 10 % 5
            results.append(failing(name, CAUSES[number // 10 % 4], started=f"2026-09-0{day}T10:00:00Z", **more))
    found = summarize([write(folder / "r", results, started="2026-09-01T00:00:00Z")], argv=("aotidoctor", "fleet", "r"))
    page = folder / "fleet.html"
    page.write_text(fleet_page.render_fleet_page(found.summary, found.rows()), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return made(tmp_path_factory.mktemp("page"), 400)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return made(tmp_path_factory.mktemp("large"), fleet_page.ROWS)


def matches(browser, text, limit=30):
    WebDriverWait(browser.driver, limit).until(lambda driver: driver.find_element(By.ID, "matches").text == text)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_it_renders_and_asks_for_nothing(browser, path, dark):
    browser.open(path, dark=dark)
    assert browser.complaints() == []
    assert [one for one in browser.requests() if not one.startswith("data:image/svg+xml,")] == [path.as_uri()]
    assert browser.driver.title.startswith("FAILING ")
    ground = browser.ask("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(15, 19, 24)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_text_can_be_read(browser, path, dark, tmp_path):
    """Of a page with fewer rows: the question is asked of every text."""
    from tests.browser.test_chromium import CONTRAST

    text = path.read_text(encoding="utf-8")
    head, mark, rest = text.partition('<table id="items-table"')
    rows = rest.split("<tr>")
    short = tmp_path / "short.html"
    short.write_text(
        head + mark + "<tr>".join(rows[:40]) + "</tbody></table></div></section></main></body></html>", encoding="utf-8"
    )
    browser.open(short, dark=dark)
    assert browser.ask(CONTRAST) == []


def test_items_are_filtered_and_sorted(browser, path):
    browser.open(path)
    matches(browser, "400 of 400 items shown")
    driver = browser.driver
    driver.find_element(By.CSS_SELECTOR, "#controls input").send_keys("models/0023")
    matches(browser, "10 of 400 items shown")
    assert browser.ask(SHOWN.format(0)) == ["models/00230.pt2", *(f"models/0023{n}.pt2" for n in range(1, 10))]
    driver.find_element(By.CSS_SELECTOR, "#controls input").clear()
    states, causes, hosts, _ = [Select(one) for one in driver.find_elements(By.CSS_SELECTOR, "#controls select")]
    causes.select_by_visible_text("input-dtype")
    hosts.select_by_visible_text("host-2")
    wanted = [n for n in range(10, 400, 10) if n // 10 % 4 == 3 and n % 4 == 2]
    matches(browser, f"{len(wanted)} of 400 items shown")
    for _ in range(2):
        browser.ask("document.querySelector('#items-table thead th:nth-child(7) button').click()")
    assert browser.ask(SHOWN.format(6)) == [f"{n / 1000:.2f}" for n in reversed(wanted)]
    assert (
        driver.find_element(By.CSS_SELECTOR, "#items-table thead th:nth-child(7)").get_attribute("aria-sort")
        == "descending"
    )
    assert browser.ask(SHOWN.format(2)) == ["failing"] * len(wanted)
    states.select_by_visible_text("healthy")
    matches(browser, "0 of 400 items shown")


def test_a_cluster_leads_to_its_items(browser, path):
    browser.open(path)
    link = browser.driver.find_element(By.CSS_SELECTOR, "#K1 a[data-cluster]")
    count = browser.ask("return document.querySelector('#clusters tbody td').textContent")
    link.click()
    matches(browser, f"{count} of 400 items shown")


def test_it_is_usable_with_ten_thousand_rows(browser, large):
    browser.open(large)
    for at in (1, 7, 4):
        browser.ask(f"document.querySelector('#items-table thead th:nth-child({at}) button').click()")
    browser.driver.find_element(By.CSS_SELECTOR, "#controls input").send_keys("team=a")
    matches(browser, "3333 of 10000 items shown", limit=120)


def test_the_keyboard_sorts_and_the_tables_have_names(browser, path):
    browser.open(path)
    driver = browser.driver
    driver.switch_to.active_element.send_keys(Keys.TAB)
    assert driver.switch_to.active_element.get_attribute("href").endswith("#main")
    button = driver.find_element(By.CSS_SELECTOR, "#items-table thead th button")
    browser.ask("arguments[0].focus()", button)
    button.send_keys(Keys.ENTER)
    assert driver.find_element(By.CSS_SELECTOR, "#items-table thead th").get_attribute("aria-sort") == "ascending"
    assert browser.ask(
        "return [...document.querySelectorAll('table')].every(one => one.caption && one.caption.textContent)"
    )
    assert browser.ask(
        "return [...document.querySelectorAll('#controls input, #controls select')].every(one => one.labels.length)"
    )
    assert browser.ask("return document.getElementById('matches').getAttribute('aria-live')") == "polite"


def test_without_its_script_it_is_all_there(browser, path, tmp_path):
    bare = tmp_path / "bare.html"
    text = path.read_text(encoding="utf-8")
    bare.write_text(text[: text.rindex("<script>")] + "</body></html>", encoding="utf-8")
    browser.open(bare)
    assert len(browser.ask(SHOWN.format(0))) == 400
    assert not browser.driver.find_element(By.ID, "controls").is_displayed()
    assert browser.driver.find_element(By.CSS_SELECTOR, "#time svg").is_displayed()


def test_a_phone_need_not_scroll_sideways(browser, path):
    browser.open(path, width=390, height=844)
    assert browser.ask("return document.documentElement.scrollWidth") <= 390
