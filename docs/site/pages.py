"""Pages that are made from other files of the project, and links between all pages.

A file outside of ``docs`` that is a page of the site is in ``PAGES``, or in one of the folders below.
Sections of the README that are pages are in ``SECTIONS``. Links in Markdown name files of the project, so
that they work on a code host too; here they become links to pages.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from docs.site import commands, notebooks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

SECTIONS = {  # of the README
    "The first hour": "first-hour.md",
    "Commands": "commands/index.md",
    "Files and configurations from others": "trust.md",
}
LEFT_OUT = {"Contents", "Reference", "Contributing"}  # the navigation has these
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "configs": "configurations/index.md",
    "docs/papers": "papers/index.md",
    "docs/notebooks": "notebooks/translate.md",
    "benchmarks/README.md": "benchmarks/index.md",
    "benchmarks/results.md": "benchmarks/results.md",
    "benchmarks/papers/README.md": "papers/index.md",
}
PICTURES = re.compile(r"benchmarks/(papers/)?[^/]+\.svg")
PAPERS = re.compile(r"benchmarks/papers/paper-(\d\d\d)\.md")

LINK = re.compile(r"(\]\()([^)\s]+)(\))")
FENCE = re.compile(r"^([ \t]*)(```+|~~~+).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)
INCLUDE = re.compile(r"^<!-- include: (\S+) -->$", re.MULTILINE)
CODE_IN_TABLES = re.compile(r"`[^`\n]*`")


def generated(executed: Path | None = None) -> dict[str, str]:
    """The Markdown of all pages that have no file in ``docs``, by their place in the site.

    executed  directory of notebooks with output, for those in ``docs``
    """
    made = dict(_readme())
    for path in ("CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md", "benchmarks/results.md"):
        made[PAGES[path]] = linked(_read(path), path)
    made["papers/index.md"] = linked(_read("benchmarks/papers/README.md"), "benchmarks/papers/README.md")
    made |= {f"commands/{name}.md": text for name, text in commands.command_pages().items()}
    made |= _configurations()
    made["api.md"] = _interface()
    for notebook in sorted(notebooks.NOTEBOOKS.glob("*.ipynb")):
        made[f"notebooks/{notebook.stem}.md"] = _notebook(notebook, executed)
    return made


def linked(text: str, source: str, page: str | None = None) -> str:
    """The text of a file with its links to files as links to pages.

    source  path of the file in the project, which links are relative to
    page    its place in the site, if it is not that of the file
    """
    folder, here = posixpath.dirname(source), posixpath.dirname(page or page_of(source) or "")

    def replace(found: re.Match[str]) -> str:
        target, _, anchor = found[2].partition("#")
        if not target and source == "README.md":
            target = source  # whose sections are on several pages
        if not target or "://" in target or target.startswith("mailto:"):
            return found[0]
        place = page_of(posixpath.normpath(posixpath.join(folder, target)), anchor)
        if place is None:
            return found[0]  # mkdocs reports it
        link = posixpath.relpath(place.partition("#")[0], here or ".")
        anchor = place.partition("#")[2] if "#" in place else anchor
        return f"{found[1]}{link}{'#' if anchor else ''}{anchor}{found[3]}"

    return outside_code(text, lambda part: LINK.sub(replace, part))


def page_of(path: str, anchor: str = "") -> str | None:
    """The page, with an anchor if that differs, that shows a file of the project; None if there is none."""
    if path == "README.md" and anchor:
        for title, page in SECTIONS.items():
            if anchor == slug(title):
                return f"{page}#"
            if anchor in _anchors_of_section(title):
                return f"{page}#{anchor}"
    if found := PAPERS.fullmatch(path):
        return f"papers/paper-{found[1]}.md"
    if path in PAGES:
        return PAGES[path]
    if path.startswith("configs/"):
        return f"configurations/{posixpath.basename(path)}.md" if (ROOT / path).is_file() else None
    if path.startswith("docs/notebooks/") and path.endswith(".ipynb"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    if PICTURES.fullmatch(path):
        return path.removeprefix("benchmarks/") if "/papers/" in path else path
    return path.removeprefix("docs/") if path.startswith("docs/") else None


def with_included(text: str, source: str) -> str:
    """The text of a page with the files that its comments ``<!-- include: PATH -->`` name, as sections."""

    def included(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        body = linked(_without_title(_read(path)), path, page_of(source))
        return outside_code(body, lambda part: re.sub(r"^(#+ )", r"#\1", part, flags=re.MULTILINE))

    return INCLUDE.sub(included, text)


def in_python_markdown(text: str) -> str:
    r"""The same text with ``|`` for ``\|`` in code in tables, which Python-Markdown needs no escape for."""

    def line(row: str) -> str:
        if not row.lstrip().startswith("|"):
            return row
        return CODE_IN_TABLES.sub(lambda found: found[0].replace("\\|", "|"), row)

    return outside_code(text, lambda part: "\n".join(map(line, part.split("\n"))))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """Text that is changed but for its fenced code."""
    pieces, end = [], 0
    for found in FENCE.finditer(text):
        pieces += [change(text[end : found.start()]), found[0]]
        end = found.end()
    return "".join([*pieces, change(text[end:])])


def slug(title: str) -> str:
    """The anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def _without_title(text: str) -> str:
    return re.sub(r"\A# .*\n+", "", text)


# ---- the README


def _sections_of_readme() -> Iterator[tuple[str, str]]:
    """The title and text of each section; the first has the title of the README."""
    for part in re.split(r"^(?=##? )", _read("README.md"), flags=re.MULTILINE):
        if part.strip():
            title, _, body = part.partition("\n")
            yield title.lstrip("# "), body.strip("\n")


def _anchors_of_section(title: str) -> list[str]:
    body = dict(_sections_of_readme()).get(title, "")
    return [slug(heading) for heading in re.findall(r"^#+ (.*)", body, re.MULTILINE)]


def _readme() -> Iterator[tuple[str, str]]:
    """The front page and the sections with pages of their own."""
    front = []
    for number, (title, body) in enumerate(_sections_of_readme()):
        if number == 0:
            front.append(f"# {title}\n\n{linked(body, 'README.md')}")
        elif title in SECTIONS:
            page = SECTIONS[title]
            raised = outside_code(body, lambda part: re.sub(r"^#(#+ )", r"\1", part, flags=re.MULTILINE))
            yield page, f"# {title}\n\n{linked(raised, 'README.md', page)}\n"
        elif title not in LEFT_OUT:
            front.append(f"## {title}\n\n{linked(body, 'README.md')}")
    yield "index.md", "\n\n".join(front) + "\n"


# ---- configurations, notebooks, the interface


def _configurations() -> dict[str, str]:
    paths = sorted((ROOT / "configs").glob("*.yaml"))
    made, rows = {}, []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        made[f"configurations/{path.name}.md"] = f"# {path.name}\n\n```yaml\n{text.rstrip()}\n```\n"
        first = re.match(r"#\s*(.+)", text)
        rows.append(f"| [{path.name}]({path.name}.md) | {first[1] if first else ''} |")
    table = "\n".join(["| configuration | |", "|---|---|", *rows])
    made["configurations/index.md"] = (
        "# Configurations\n\nThe files of the directory `configs`. `hiero init` writes one for "
        f"texts of your own.\n\n{table}\n"
    )
    return made


def _notebook(path: Path, executed: Path | None) -> str:
    done = executed / path.name if executed is not None else path
    text = linked(notebooks.as_markdown(done), f"docs/notebooks/{path.name}")
    title, _, body = text.partition("\n")
    note = f"[{path.name}]({path.name}) is the notebook, to be run in a directory of your own."
    return f"{title}\n\n{note}\n{body}"


def _interface() -> str:
    """Public names, as ``hiero`` lists them."""
    import hiero

    parts = [
        "# API reference",
        "Made from the docstrings of what `hiero` lists. [python.md](python.md) explains more.",
    ]
    parts[1] = "Made from the docstrings. [The Python interface](python.md) is the introduction."
    names = [
        *sorted(name for name in hiero.__all__ if name[0].islower()),
        *sorted(name for name in hiero.__all__ if name[0].isupper()),
    ]
    parts += [f"::: hiero.{name}" for name in names]
    return "\n\n".join(parts) + "\n"


def pictures() -> dict[str, str]:
    """Pictures outside of ``docs``: their files, by their places in the site."""
    paths = sorted((ROOT / "benchmarks").rglob("*.svg"))
    found = {page_of(path.relative_to(ROOT).as_posix()): os.fspath(path) for path in paths}
    return {page: path for page, path in found.items() if page}
