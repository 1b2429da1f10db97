"""A headless Chromium that opens one page after the other, and what can be asked of it."""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

# Without these it asks for updates, and looks up its maker's hosts.
FLAGS = (
    "--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--force-color-profile=srgb",
)  # fmt: skip


def programs() -> tuple[str, str] | None:
    """Chromium and its driver, None where one of them is missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Page:
    """The page that is open. Sizes are CSS pixels."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(
        self, path: Path | str, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = ""
    ) -> None:
        """Open a file or an address, with empty logs."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", media=media, features=features)
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(path if isinstance(path, str) else path.as_uri())

    def command(self, name: str, **parameters: object) -> dict:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def ask(self, script: str, *arguments: object) -> object:
        """The result of JavaScript, which the page itself has none of."""
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the console says since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for since the page was opened, also those that were refused."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [item["params"]["request"]["url"] for item in messages if item["method"] == "Network.requestWillBeSent"]

    def picture(self, width: int, height: int) -> bytes:
        """The upper left part of the page as PNG, also what the window does not show."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        return base64.b64decode(self.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"])

    def paper(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """A browser with an empty ``profile``. Raises WebDriverException where it does not start."""
    found = programs()
    if found is None:
        raise FileNotFoundError("chromium and chromedriver")
    options = Options()
    options.binary_location = found[0]
    for flag in (*FLAGS, f"--user-data-dir={profile}", *(("--no-sandbox",) if os.geteuid() == 0 else ())):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Beside the profile it keeps reports of crashes, and more, for its user.
    own = {**os.environ, "XDG_CONFIG_HOME": str(profile), "XDG_CACHE_HOME": str(profile)}
    driver = webdriver.Chrome(options=options, service=Service(found[1], log_output=os.devnull, env=own))
    try:
        yield Page(driver)
    finally:
        driver.quit()
