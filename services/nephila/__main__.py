"""`python -m nephila`."""

import sys

from nephila.cli.main import main

sys.exit(main())
