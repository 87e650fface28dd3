"""The page in a browser: typing, clicking, reading."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the server needs it")
pytest.importorskip("selenium", reason="it drives the browser")

from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver import Chrome, ChromeOptions, Keys
from selenium.webdriver.chrome.service import Service as Driver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.worlds.server import Client, served, write_models

pytestmark = pytest.mark.once

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# No sandbox: containers refuse it. The others keep the browser from asking its makers.
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1000",
]
LINE = "das haus ist alt ."


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if path is None or driver is None:
        pytest.skip("no Chromium or chromedriver here (Debian: apt install chromium chromium-driver)")
    options = ChromeOptions()
    options.binary_location = path
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        started = Chrome(options=options, service=Driver(driver))
    except WebDriverException as error:
        pytest.skip(f"the browser does not start here: {error.msg}")
    yield started
    started.quit()


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    paths = write_models(tmp_path_factory.mktemp("models"))
    with served([f"de-en={paths['words']}", f"fr-en={paths['other']}"], max_words=12) as client:
        yield client


class Page:
    """The page, and what a reader sees of it."""

    def __init__(self, browser: Chrome, client: Client) -> None:
        self.browser = browser
        browser.get(client.place)
        self.until(lambda: self.one("#model option"))

    def one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        return [one.text for one in self.all(selector)]

    def until(self, condition: Callable[[], Any]) -> None:
        wait = WebDriverWait(
            self.browser, 20, ignored_exceptions=[StaleElementReferenceException, WebDriverException]
        )
        wait.until(lambda _: condition())

    def sees(self, selector: str, expected: list[str]) -> None:
        self.until(lambda: self.texts(selector) == expected)

    def type(self, text: str) -> None:
        self.one("#text").send_keys(text)

    def width(self) -> tuple[int, int]:
        wide, window = self.browser.execute_script(
            "return [document.documentElement.scrollWidth, window.innerWidth]"
        )
        return wide, window


@pytest.fixture
def page(browser: Chrome, client: Client) -> Iterator[Page]:
    page = Page(browser, client)
    browser.get_log("browser")  # of the page before
    yield page
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_typing_and_pointing(page: Page) -> None:
    assert page.one("label[for=text]").text == "Text"
    page.type(LINE)
    page.sees("#output button", ["the house is old ."])
    page.sees("#source button", LINE.split())
    page.sees("#target button", ["the", "house", "is", "old", "."])
    # Keyboard: a word that has the focus shows its links, as one under the pointer does.
    page.browser.execute_script("document.querySelectorAll('#target button')[1].focus()")
    page.sees("#source .linked", ["haus"])
    page.one("#edit").click()
    page.until(lambda: not page.all(".linked"))
    page.browser.execute_script(
        "document.querySelectorAll('#source button')[3].dispatchEvent(new PointerEvent('pointerenter'))"
    )
    page.sees("#target .linked", ["old"])


def test_other_translations_and_the_derivation(page: Page) -> None:
    page.type(LINE)
    page.until(lambda: len(page.all("#others button")) == 10)
    assert page.texts("#others button")[1].startswith("the home is old .")
    page.until(lambda: "[X,1] ist alt → [1] is old" in page.one("#tree").text)
    assert "das haus → the house" in page.one("#tree").text
    page.all("#others button")[1].click()
    page.sees("#target button", ["the", "home", "is", "old", "."])
    assert "das haus → the home" in page.one("#tree").text
    assert page.one("#others button[aria-pressed=true]").text.startswith("the home")
    # A part of the tree can be closed.
    before = len([one for one in page.all("#tree .leaf") if one.is_displayed()])
    page.all("#tree summary")[0].click()
    assert len([one for one in page.all("#tree .leaf") if one.is_displayed()]) < before


def test_the_chart_behind_a_span(page: Page) -> None:
    page.type(LINE)
    page.sees("#source button", LINE.split())
    page.all("#source button")[3].click()
    page.sees("#rules tbody summary", ["alt → old", "alt → ancient", "alt → alt"])
    page.all("#rules summary")[0].click()
    page.until(lambda: "p = 0.600" in page.one("#rules").text)
    words = page.all("#source button")
    words[0].send_keys(Keys.ENTER)  # widens the span
    page.until(lambda: "das haus ist alt" in page.one("#chart-note").text)
    assert "[X,1] ist alt → [1] is old" in page.texts("#rules tbody summary")
    assert len(page.all("#source [aria-pressed=true]")) == 4
    words[1].click()  # inside: a new span
    page.until(lambda: "“haus”" in page.one("#chart-note").text)
    assert page.texts("#source [aria-pressed=true]") == ["haus"]


def test_why_not(page: Page) -> None:
    page.type(LINE)
    page.until(lambda: page.one("#edit").get_attribute("value") == "the house is old .")
    page.one("#edit").clear()
    page.one("#edit").send_keys("the home is old .", Keys.ENTER)
    page.until(lambda: "best of all derivations of your translation" in page.one("#comparison").text)
    first = page.one("#comparison tbody tr").text.split()
    assert first == ["p", "−1.000", "0.700", "1.400", "−0.700"]
    page.one("#edit").clear()
    page.one("#edit").send_keys("the home was old .")
    page.one("#why button").click()
    page.until(lambda: "The rules do not derive your translation" in page.one("#comparison").text)
    text = page.one("#comparison").text
    assert 'longest match "the home" of "das haus"; in no rule that applies: was' in text
    assert "which differs from yours in 1 word." in text


def test_terms(page: Page) -> None:
    page.type(LINE)
    page.sees("#output button", ["the house is old ."])
    page.one("#glossary summary").click()
    page.one("#hard").click()
    page.one("#terms").send_keys("das haus = the premises", Keys.ENTER, "alt =")
    page.sees("#output button", ["the premises is old ."])
    page.until(lambda: "das haus → the premises" in page.one("#tree").text)
    page.all("#source button")[0].click()
    page.all("#source button")[1].click()
    page.sees("#rules tbody summary", ["das haus → the premises", "[X,1] → [1]"])  # and glue
    page.one("#terms").send_keys(Keys.CONTROL + "a" + Keys.NULL, Keys.BACKSPACE)
    page.sees("#output button", ["the house is old ."])


def test_lines_models_and_markup(page: Page) -> None:
    page.type("<b>haus</b>\n\nla maison")
    page.sees("#output button", ["<b>haus</b>", "", "la maison"])
    page.all("#output button")[2].click()
    page.sees("#source button", ["la", "maison"])
    page.one("#model option[value=fr-en]").click()
    page.sees("#output button", ["<b>haus</b>", "", "the house"])
    page.sees("#target button", ["the", "house"])
    assert page.one("#about").text.startswith("fr → en")


def test_errors_are_shown_and_go_away(page: Page) -> None:
    page.type("haus " * 13)
    page.sees("#problem", ["found a line of 13 words, expected at most 12"])
    page.one("#text").send_keys(Keys.CONTROL + "a" + Keys.NULL, Keys.BACKSPACE)
    page.until(lambda: not page.one("#problem").text)
    page.browser.get_log("browser")  # has the answer 400
    page.type("haus")
    page.sees("#output button", ["house"])


def test_on_a_phone(page: Page) -> None:
    """Nothing is wider than the window, in either direction of light."""
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        grounds = set()
        for theme in ("light", "dark"):
            media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            page.one("#text").clear()
            page.type(f"{LINE} " * 2 + "x" * 80)
            page.until(lambda: len(page.all("#source button")) == 11)
            page.all("#source button")[1].click()
            page.until(lambda: page.all("#rules tbody tr"))
            page.one("#why button").click()
            page.until(lambda: page.one("#comparison").text)
            wide, window = page.width()
            assert wide <= window
            grounds.add(page.one("body").value_of_css_property("background-color"))
        assert len(grounds) == 2
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_server_that_has_gone(browser: Chrome, tmp_path: Path) -> None:
    with served([str(write_models(tmp_path)["words"])]) as client:
        page = Page(browser, client)
    page.type("haus")
    page.sees("#problem", ["The server does not answer."])
