"""Give new files the names of older ones, on systems that refuse to while a process uses the older one."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from hiero.core.errors import HieroError

# Windows neither replaces nor renames files and directories that are open or mapped. Programs that look at
# new files, such as scanners, hold them for a moment only.
ATTEMPTS = 20 if sys.platform == "win32" else 1
WAIT = 0.1  # seconds
# Of Windows: access denied, sharing violation, lock violation, a section of the file is mapped.
IN_USE = (5, 32, 33, 1224)


def rename_over(new: str | Path, old: str | Path) -> None:
    """Rename a file to a name that may be taken, or a directory to one that is free.

    Where the system refuses because a process uses a file, it is tried again for two seconds. Then all files
    are as they were, and the error says what to do.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            os.replace(new, old)
            return
        except OSError as error:
            if ATTEMPTS == 1 or not _is_in_use(error):
                raise
            if not left:
                problem = "found a file that another process has open or mapped, expected to replace it"
                hint = "end that process, or choose another output"
                used = old if os.path.lexists(old) else new
                raise HieroError(f"{used}: {problem} ({hint})") from None
        time.sleep(WAIT)


def _is_in_use(error: OSError) -> bool:
    return getattr(error, "winerror", None) in IN_USE or isinstance(error, PermissionError)
