"""The program `nephila`, also as `python -m nephila`: an interruption is no traceback, not even while modules load."""

import os
import sys


def main() -> int:
    """Run the process's command line; returns the exit code."""
    try:
        from nephila.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        # A module half loaded may not survive the interpreter's end; nothing has been begun that would need it.
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
