"""Hooks of mkdocs: add pages that are made, place all pages in the navigation, and convert links."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parents[2]))  # the command mkdocs does not search the working directory

from docs.site import pages

# Sections in order, and the order of known pages. Other pages of ``docs`` follow in OTHERS.
NAVIGATION: dict[str, list[str]] = {
    "Start": ["index.md", "first-hour.md", "migrating.md", "limits.md"],
    "Guides": [
        "decoding.md",
        "constraints.md",
        "lattices.md",
        "consensus.md",
        "adaptation.md",
        "serve.md",
        "models.md",
        "language-models.md",
        "phrase-tables.md",
        "search.md",
        "pipeline.md",
        "lookup.md",
        "tuning.md",
        "reordering.md",
        "bins.md",
        "report.md",
        "clusters.md",
    ],
    "Notebooks": [f"notebooks/{name}.md" for name in ("translate", "bitext", "features", "lookup")],
    "Commands": ["commands/index.md"],
    "Papers": ["papers/index.md"],
    "Reference": ["formats.md", "python.md", "api.md", "configurations/index.md"],
    "Project": ["changelog.md", "contributing.md", "internals.md", "benchmarks/index.md"],
}
FOLDERS = {"notebooks": "Notebooks", "commands": "Commands", "papers": "Papers"}
BESIDE = {"configurations": "Reference", "benchmarks": "Project"}
OTHERS = "Guides"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and make the navigation."""
    executed = os.environ.get("HIERO_NOTEBOOKS")
    made = pages.generated(Path(executed) if executed else None)
    for place, text in made.items():
        if place in files.src_uris:
            raise PluginError(f"docs/{place}: this page is also made from another file (docs/site/pages.py)")
        files.append(File.generated(config, place, content=pages.in_python_markdown(text)))
    for place, path in pages.pictures().items():
        files.append(File.generated(config, place, abs_src_path=path))
    config.nav = navigation([file.src_uri for file in files.documentation_pages()])
    return files


def navigation(places: list[str]) -> list[dict[str, Any]]:
    """Sections with all pages: known ones in their order, then the others, sorted."""
    known = {page for names in NAVIGATION.values() for page in names}
    sections = {title: [name for name in names if name in places] for title, names in NAVIGATION.items()}
    for place in sorted(places):
        if place not in known:
            folder = place.partition("/")[0] if "/" in place else ""
            sections[FOLDERS.get(folder) or BESIDE.get(folder) or OTHERS].append(place)
    return [{title: list(names)} for title, names in sections.items() if names]


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Convert links of pages that have a file in ``docs``, and include what they name."""
    if page.file.generated_by is not None:
        return markdown
    source = f"docs/{page.file.src_uri}"
    return pages.in_python_markdown(pages.with_included(pages.linked(markdown, source), source))
