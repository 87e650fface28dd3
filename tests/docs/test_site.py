"""The documentation site is built without a warning, has all pages, and needs no network."""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import hiero
from hiero.cli.completion import commands as all_parsers
from hiero.cli.main import COMMANDS, parser

pytest.importorskip("mkdocs", reason="mkdocs is not installed (pip install 'hiero-mt[docs]')")

from docs.site import commands, docstrings, notebooks, pages
from docs.site.hooks import navigation

pytestmark = [pytest.mark.heavy, pytest.mark.once]

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"


def build(out: Path, config: Path, executed: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Build the site with warnings as errors."""
    more = {"NO_MKDOCS_2_WARNING": "1"} | ({"HIERO_NOTEBOOKS": str(executed)} if executed is not None else {})
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(out)]
    return subprocess.run(command, env=os.environ | more, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, executed: Path) -> Path:
    out = tmp_path_factory.mktemp("site")
    done = build(out, PROJECT / "mkdocs.yml", executed)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return out


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_every_page_of_docs_is_there(site: Path) -> None:
    for page in (*DOCS.glob("*.md"), *DOCS.glob("papers/*.md"), *DOCS.glob("notebooks/*.ipynb")):
        assert site.joinpath(page.relative_to(DOCS)).with_suffix(".html").is_file(), page.name
    for place in pages.generated():
        assert (site / place).with_suffix(".html").is_file(), place
    assert not (site / "site").exists()


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'> ]+"""
        r"""|<link\b[^>]*\bhref=["']?(?:https?:)?//[^"'> ]+|@import[^;]*//[^;]*;|url\(["']?https?:"""
    )
    for page in (*site.rglob("*.html"), *site.rglob("*.css")):
        assert loads.findall(page.read_text(encoding="utf-8")) == [], page


def test_pages_of_commands_have_all_options(site: Path) -> None:
    for child in all_parsers(parser()):
        words = child.prog.split()[1:]
        if words:
            text = text_of(site / "commands" / f"{words[0]}.html")
            assert child.prog in text
            description = "".join((child.description or "").split())
            assert description in "".join(text.split()), child.prog
            for name in commands.options_of(child):
                assert name in text, (child.prog, name)
    assert {page.stem for page in (site / "commands").glob("*.html")} == {*COMMANDS, "index"}


def test_reference_has_all_names(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    for name in hiero.__all__:
        assert f'id="hiero.{name}"' in text, name
    assert "&gt;&gt;&gt;" in text  # examples
    assert "<dt><code>source, target</code></dt>" in text


def test_the_readme_is_not_copied(site: Path) -> None:
    """Its sections are on pages of their own, the rest on the front page."""
    assert "hiero run configs/demo.yaml -j 2" in text_of(site / "first-hour.html")
    front = text_of(site / "index.html")
    assert "Speed and exactness" in front
    assert "hiero run configs/demo.yaml" not in front
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    for title in (*pages.SECTIONS, *pages.LEFT_OUT):
        assert f"\n## {title}\n" in readme, (
            f"docs/site/pages.py names a section that the README has not: {title}"
        )


def test_papers_have_their_tables(site: Path) -> None:
    for number in range(5):
        assert (site / "papers" / f"paper-00{number}.html").read_text(encoding="utf-8").count("<table>") >= 2
    assert (site / "papers" / "mira-seeds.svg").is_file()
    assert (site / "benchmarks" / "transformer-multi30k.svg").is_file()


def test_notebooks_have_their_output(site: Path) -> None:
    for path in notebooks.NOTEBOOKS.glob("*.ipynb"):
        text = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert 'class="text output' in text or 'class="output' in text, path.name


def test_pages_without_a_place_are_put_among_the_guides() -> None:
    sections = {
        title: names
        for entry in navigation(["index.md", "decoding.md", "zebra.md", "commands/x.md"])
        for title, names in entry.items()
    }
    assert sections == {
        "Start": ["index.md"],
        "Guides": ["decoding.md", "zebra.md"],
        "Commands": ["commands/x.md"],
    }


def test_broken_links_and_pages_made_twice_are_errors(tmp_path: Path) -> None:
    for name in ("docs", "configs", "benchmarks/papers"):
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("*.py[co]", "*.jsonl"))
    for path in (
        *PROJECT.glob("*.md"),
        PROJECT / "mkdocs.yml",
        PROJECT / "benchmarks" / "README.md",
        PROJECT / "benchmarks" / "results.md",
    ):
        shutil.copy(path, tmp_path / path.relative_to(PROJECT))
    (tmp_path / "docs" / "zebra.md").write_text("# Zebra\n\n[gone](../gone.md)\n[no](decoding.md#nowhere)\n")
    done = build(tmp_path / "out", tmp_path / "mkdocs.yml")
    assert done.returncode == 1
    assert "'zebra.md' contains a link '../gone.md'" in done.stderr
    assert "'zebra.md' contains a link 'decoding.md#nowhere'" in done.stderr
    (tmp_path / "docs" / "zebra.md").rename(tmp_path / "docs" / "first-hour.md")
    done = build(tmp_path / "out", tmp_path / "mkdocs.yml")
    assert done.returncode == 1
    assert "docs/first-hour.md: this page is also made from another file" in done.stderr


def test_every_page_of_docs_is_in_the_readme() -> None:
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    missing = [page.name for page in DOCS.glob("*.md") if f"(docs/{page.name})" not in readme]
    assert missing == [], "add rows to the table of README.md"


def test_commands_and_flags_in_prose_exist() -> None:
    """Code such as ``hiero lm estimate --order 5`` in the text of pages."""
    parsers = {child.prog: child for child in all_parsers(parser())}
    names = sorted(parsers, key=len, reverse=True)
    for page in (PROJECT / "README.md", *DOCS.glob("**/*.md")):
        text = pages.FENCE.sub("", page.read_text(encoding="utf-8"))
        for code in re.findall(r"`(hiero [a-z][^`]*)`", text):
            words = " ".join(code.split())
            prog = next((name for name in names if f"{words} ".startswith(f"{name} ")), "hiero")
            assert prog != "hiero", f"{page.name}: {code}"
            for flag in re.findall(r"(?<= )--[a-z][a-z-]*", words):
                assert flag in commands.options_of(parsers[prog]), f"{page.name}: {code}"


# ---- the converters


def test_links() -> None:
    def linked(text: str, source: str, page: str | None = None) -> str:
        return pages.linked(f"[x]({text})", source, page)[4:-1]

    assert linked("decoding.md#input", "docs/bins.md") == "decoding.md#input"
    assert linked("../README.md", "docs/bins.md") == "index.md"
    assert linked("../README.md#commands", "docs/bins.md") == "commands/index.md"
    assert linked("../README.md#4-build-a-system-from-a-bitext", "docs/bins.md").startswith(
        "first-hour.md#4-build"
    )
    assert linked("docs/bins.md", "README.md", "commands/index.md") == "../bins.md"
    assert linked("../configs/tune.yaml", "docs/bins.md") == "configurations/tune.yaml.md"
    assert linked("paper-003.md", "benchmarks/papers/README.md") == "paper-003.md"
    assert linked("../../docs/bins.md", "benchmarks/papers/paper-003.md") == "../bins.md"
    assert linked("https://example.org/README.md", "docs/bins.md") == "https://example.org/README.md"
    assert pages.linked("```\n[x](../README.md)\n```", "docs/bins.md") == "```\n[x](../README.md)\n```"


def test_code_in_tables() -> None:
    table = "| `a \\|\\|\\| b` | c \\| d |\n`e \\| f`"
    assert pages.in_python_markdown(table) == "| `a ||| b` | c \\| d |\n`e \\| f`"


def test_docstrings() -> None:
    text = "First.\n\na, b  one\n      two\nlonger  three\n\n>>> 1\n1\n\nA line  with spaces\nand another."
    assert docstrings.as_markdown(text) == (
        "First.\n\n`a, b`\n:   one two\n\n`longer`\n:   three\n\n```pycon\n>>> 1\n1\n```\n\n"
        "A line  with spaces\nand another."
    )


# ---- in a browser


@pytest.fixture
def server(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as httpd:
        thread = threading.Thread(target=httpd.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


@pytest.mark.slow
def test_search_in_a_browser(server: str, tmp_path: Path) -> None:
    """Also with every other host out of reach."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra test)")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        f"user-data-dir={tmp_path / 'profile'}",
        "window-size=1280,900",
        "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "disable-dev-shm-usage",
    ):
        options.add_argument(f"--{flag}")
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        browser.get(f"{server}/index.html")
        browser.find_element(By.CSS_SELECTOR, ".md-search__input").send_keys("jackknife")
        wait = WebDriverWait(browser, 30)
        found = wait.until(lambda b: b.find_elements(By.CSS_SELECTOR, ".md-search-result__link"))
        assert any("tuning.html" in (link.get_attribute("href") or "") for link in found)
        browser.get(f"{server}/commands/decode.html")
        assert any(
            term.text.startswith("--pop-limit") for term in browser.find_elements(By.CSS_SELECTOR, "dt")
        )
    finally:
        browser.quit()
