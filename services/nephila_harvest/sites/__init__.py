"""Sites and their directories: settings with inheritance, the plan of the day, and the runs of directories as jobs."""

from typing import Final

FILE: Final = "sites.db"
"""Name of the file of sites in a directory."""
