"""`python -m nephila.storage --config F`: the same as `nephila storage`."""

import sys

from nephila.cli.main import main

sys.exit(main(["storage", *sys.argv[1:]]))
