"""Pages in a real browser: headless Chromium, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hiero.reporting.page import page
from tests.reporting.test_page import report

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.heavy]

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPEN_ALL = "document.querySelectorAll('details').forEach(one => one.open = true)"
# Elements that reach beyond the right edge of the page, but for those in a part that scrolls.
TOO_WIDE = """
return [...document.querySelectorAll('body *')].filter(one =>
    !one.closest('.scroll > *, svg *') && one.getBoundingClientRect().right > innerWidth + 0.5
).map(one => one.outerHTML.slice(0, 80))
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    webdriver = pytest.importorskip("selenium.webdriver", reason="it drives the browser")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield opened
    opened.quit()


def show(browser: Any, path: Path, width: int, scheme: str = "light") -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(path.as_uri())


@pytest.mark.parametrize(("width", "systems"), [(390, 1), (390, 3), (320, 2), (1200, 2)])
@pytest.mark.parametrize(
    "text", ["word", "many words in a row " * 20, "w" * 300, "<script>alert(1)</script>"]
)
def test_nothing_is_wider_than_the_page(
    browser: Any, tmp_path: Path, width: int, systems: int, text: str
) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(report(text, systems)))
    show(browser, path, width)
    browser.execute_script(OPEN_ALL)
    assert browser.execute_script(TOO_WIDE) == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.get_log("browser") == []  # neither errors nor refused requests


def test_light_and_dark(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(report("word")))
    colours = {}
    for scheme in ("light", "dark"):
        show(browser, path, 390, scheme)
        look = (
            "const of = s => getComputedStyle(document.querySelector(s));"
            "return [of('body').backgroundColor, of('body').color, of('svg .ink').fill, of('svg .back').fill]"
        )
        colours[scheme] = browser.execute_script(look)
    assert colours["light"][0] == "rgb(255, 255, 255)"
    assert colours["dark"][0] == "rgb(20, 24, 29)"
    for paper, ink, of_pictures, back in colours.values():
        assert paper != ink
        assert of_pictures == ink
        assert back == "none"


def test_links_lead_to_sections(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(report("word")))
    show(browser, path, 390)
    for link in browser.find_elements("css selector", "nav a"):
        link.click()
        target = browser.execute_script("return document.querySelector(':target').textContent")
        assert target == link.text
