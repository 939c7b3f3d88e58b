"""The command that installs an extra of this distribution: for the Python that runs, and for a clone that is not on any
package index."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Final

_CLONE: Final = Path(__file__).resolve().parents[4]
"""Root of the repository, where this is a file of a clone."""


EXTRAS: Final = {
    "brotli": "codings",
    "cssselect": "rules",
    "h11": "control",
    "iregexp_check": "rules",
    "jinja2": "console",
    "jmespath": "rules",
    "jsonpath_rfc9535": "rules",
    "lxml": "rules",
    "parsel": "rules",
    "pypdfium2": "documents",
    "python_calamine": "documents",
    "starlette": "control",
    "uvicorn": "control",
    "aiokafka": "kafka",
    "dagster": "dagster",
    "google": "kafka",
    "kopf": "operator",
    "kubernetes": "operator",
    "langchain_core": "langchain",
    "llama_index": "llama-index",
    "mcp": "mcp",
    "opentelemetry": "tracing",
    "prometheus_client": "kafka",
    "scrapy": "scrapy",
    "structlog": "kafka",
    "zstandard": "kafka",
    "psycopg": "postgres",
    "pyarrow": "parquet",
    "obstore": "s3",
    "trafilatura": "trafilatura",
}
"""Library → the extra of this distribution that installs it."""

BROWSER: Final = "browser"
"""The extra of the browser lane, whose libraries other parts use too."""


def install_line(extra: str, clone: Path = _CLONE) -> str:
    """A line for a shell, which works as it is."""
    if not (clone / "pyproject.toml").is_file():
        return f"{_pip('pip')} install 'nephila[{extra}]'"
    source = "." if Path.cwd() == clone else str(clone)
    return f"{_pip('pip')} install -e {shlex.quote(f'{source}[{extra}]')}"


def library_line(name: str) -> str:
    """The line that installs a library by its own name."""
    return f"{_pip('pip')} install {name}"


def _pip(name: str) -> str:
    """pip of the Python that runs: by its name where the shell has that one, else through this Python."""
    path = shutil.which(name)
    same = path is not None and os.path.dirname(path) == os.path.dirname(sys.executable)
    return name if same else f"{shlex.quote(sys.executable)} -m pip"
