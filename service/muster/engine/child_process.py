"""How a process of ours is started beside this one: a new interpreter that imports one module and is given one socket or pipe."""

from __future__ import annotations

import sys

# multiprocessing's spawn would import the parent's main module first, and with it the whole command line. Signals to the
# process group are ignored from the start, before the imports take their time.
_ENTRY = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.path[:] = {path!r}
from {module} import main
main({descriptor})
"""


def command_of(module: str, descriptor: int) -> list[str]:
    """What runs the module's `main` on a descriptor that is passed on; nothing is imported from the working directory."""
    return [sys.executable, "-P", "-c", _ENTRY.format(path=sys.path, module=module, descriptor=descriptor)]
