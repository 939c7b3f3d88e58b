"""`python -m nephila.control --config F`: the same as `nephila api`."""

import sys

from nephila.cli.main import main

sys.exit(main(["api", *sys.argv[1:]]))
