"""The program `nephila`, also as `python -m nephila`: an interruption is no traceback, not even while modules load."""

import gc
import os
import sys


def main() -> int:
    """Run the process's command line; returns the exit code."""
    # Modules make objects that live as long as the process: by default the collector runs 300 times while they load.
    gc.set_threshold(50_000, 20, 100)
    try:
        from nephila.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        # A module half loaded may not survive the interpreter's end; nothing has been begun that would need it.
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
