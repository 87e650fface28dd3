"""``python -m hiero``: the ``hiero`` command."""

import sys

from hiero.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
