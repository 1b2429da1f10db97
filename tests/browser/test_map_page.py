"""The page of a map in a real browser: panels that mark what belongs together, sorting, filters, and no script needed."""

from __future__ import annotations

import pytest

pytest.importorskip("selenium", reason="selenium is not installed (pip install 'aotidoctor[test]')")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from aotidoctor.reports.html.map_page import render_map_page
from tests.browser.chromium import programs
from tests.unit.cli.test_map import LOUD, made

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        programs() is None, reason="there is no chromium with chromedriver (apt install chromium-driver)"
    ),
]
MARKED = "return [...document.querySelectorAll('#{} tbody tr.marked th')].map(head => head.textContent)"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    page = tmp_path_factory.mktemp("page") / "map.html"
    page.write_text(render_map_page(made(1500)), encoding="utf-8")
    return page


def press(browser, section, row, key=Keys.ENTER):
    browser.driver.find_elements(By.CSS_SELECTOR, f"#{section} tbody tr th button")[row].send_keys(key)


def test_it_renders_and_asks_for_nothing(browser, path):
    browser.open(path)
    assert browser.complaints() == []
    assert [one for one in browser.requests() if not one.startswith("data:image/svg+xml,")] == [path.as_uri()]
    assert browser.driver.title.startswith("Map of model ")
    assert LOUD in browser.driver.find_element(By.TAG_NAME, "header").text


def test_choosing_a_call_marks_its_line_its_node_and_its_buffers(browser, path):
    browser.open(path)
    press(browser, "calls", 3)
    assert browser.ask(MARKED.format("calls")) == ["3"]
    assert browser.ask(MARKED.format("program")) == ["relu_3"]
    assert browser.ask(MARKED.format("source")) == ["model.py:3"]
    assert browser.ask(MARKED.format("memory-buffers")) == ["buf3"]
    assert browser.ask("return document.querySelectorAll('rect.marked').length") == 1
    browser.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert browser.ask("return document.querySelectorAll('.marked').length") == 0


def test_choosing_a_line_marks_all_its_calls_and_brings_the_first_into_view(browser, path):
    browser.open(path)
    press(browser, "source", 39)
    assert browser.ask(MARKED.format("calls")) == [str(at) for at in range(39, 1500, 40)]
    inside = (
        "const box = document.querySelector('#calls .box'), row = box.querySelector('tr.marked');"
        "const outer = box.getBoundingClientRect(), inner = row.getBoundingClientRect();"
        "return inner.top >= outer.top && inner.bottom <= outer.bottom"
    )
    assert browser.ask(inside) is True
    assert browser.ask("return document.querySelectorAll('rect.marked').length") == 37


def test_calls_are_sorted_by_time_and_filtered(browser, path):
    browser.open(path)
    browser.driver.find_elements(By.CSS_SELECTOR, "#items-table thead button")[5].click()
    browser.driver.find_elements(By.CSS_SELECTOR, "#items-table thead button")[5].click()
    assert browser.ask("return document.querySelector('#items-table tbody th').textContent") == "1499"
    browser.driver.find_element(By.CSS_SELECTOR, "#controls input").send_keys("model.py:39")
    WebDriverWait(browser.driver, 30).until(
        lambda driver: driver.find_element(By.ID, "matches").text == "37 of 1500 items shown"
    )


def test_without_script_all_tables_are_there(browser, path):
    browser.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(path)
        assert len(browser.driver.find_elements(By.CSS_SELECTOR, "#items-table tbody tr")) == 1500
        assert browser.driver.find_elements(By.CSS_SELECTOR, "tbody button") == []
    finally:
        browser.command("Emulation.setScriptExecutionDisabled", value=False)
