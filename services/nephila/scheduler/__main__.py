"""`python -m nephila.scheduler --config F`: the same as `nephila scheduler`."""

import sys

from nephila.cli.main import main

sys.exit(main(["scheduler", *sys.argv[1:]]))
