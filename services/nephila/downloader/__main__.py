"""`python -m nephila.downloader --config F`: the same as `nephila downloader`."""

import sys

from nephila.cli.main import main

sys.exit(main(["downloader", *sys.argv[1:]]))
