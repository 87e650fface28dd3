"""``hiero serve``: translate over HTTP."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from importlib.util import find_spec

from hiero.cli.options import (
    add_command,
    add_files,
    add_quiet,
    add_settings,
    add_strict,
    add_threads,
    add_user_code,
    replaced,
)
from hiero.core.errors import ConfigError
from hiero.core.progress import print_line
from hiero.server.config import ServerConfig

DESCRIPTION = """\
Serve models over HTTP: a page that translates and shows how, JSON for programs, and the requests of
LibreTranslate for its clients. Lines of concurrent requests share the threads. Needs pip install
'hiero-mt[serve]'.

Lines are translated as hiero decode does: words with spaces between them. A configuration with a section prep
takes raw text and gives raw text. Without a model, the bundled German-English one is served as de-en."""
EPILOG = """\
examples:
  hiero serve
  hiero serve --model de-en=demo.run/model.yaml --model fr-en=fr-en.hiero -j 4
  curl -s http://127.0.0.1:5000/translate -H 'Content-Type: application/json' \\
    -d '{"q": "er hat mir ein buch versprochen .", "source": "de", "target": "en"}'"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add ``hiero serve`` with its arguments."""
    command = add_command(subparsers, "serve", "translate over HTTP, with a page", DESCRIPTION, EPILOG)
    group = command.add_argument_group("models")
    add = group.add_argument
    add(
        "-c",
        "--model",
        "--config",
        metavar="[NAME=]MODEL",
        action="append",
        default=[],
        help="YAML configuration or package; repeatable; a NAME such as de-en says the languages",
    )
    add(
        "--truecase",
        metavar="[NAME=]LIST",
        action="append",
        default=[],
        help="words with capitals, from hiero prep --learn-truecase, for a model of raw text",
    )
    add_strict(group)
    add_user_code(group)
    add_threads(group)
    add_quiet(group)
    add_settings(command, ServerConfig)
    command.set_defaults(run=run)
    add_files(command, "-c --truecase", "")


def run(args: argparse.Namespace) -> int:
    """Run ``hiero serve``; return the exit status."""
    config = replaced(ServerConfig(), args)
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise ConfigError(f"hiero serve needs {' and '.join(missing)}: pip install 'hiero-mt[serve]'")

    from hiero.server.models import load_served, specs_of
    from hiero.server.run import address_of, listen, serve, shown_log
    from hiero.server.service import Service

    specs = specs_of(args.model, args.truecase)
    log = logging.getLogger("hiero.server")
    # Before the models are loaded, which takes a while.
    with shown_log(logging.WARNING if args.quiet else logging.INFO), listen(config) as listening:
        models = [
            load_served(spec, log.warning, strict=args.strict, most_new_words=config.max_new_words)
            for spec in specs
        ]
        service = Service(models, config, args.threads)
        place = address_of(listening)

        def started() -> None:
            if not args.quiet:
                print_line(f"hiero: serving {', '.join(service.models)} at {place} (Ctrl-C stops)")

        ended_by = serve(service, listening, started)
    if not args.quiet:
        print_line("hiero: stopped")
    sys.stderr.flush()
    return 130 if ended_by == signal.SIGINT else 0
