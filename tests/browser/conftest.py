"""One browser for the tests of a module."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A page of Chromium; the tests are skipped where it does not start."""
    # The tests are skipped as well where selenium is not installed.
    from selenium.common.exceptions import WebDriverException

    from tests.browser.chromium import chromium

    try:
        with chromium(tmp_path_factory.mktemp("profile")) as page:
            yield page
    except WebDriverException as error:
        pytest.skip(f"chromium does not start: {error.msg}")
