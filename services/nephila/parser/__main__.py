"""`python -m nephila.parser --config F`: the same as `nephila parser`."""

import sys

from nephila.cli.main import main

sys.exit(main(["parser", *sys.argv[1:]]))
