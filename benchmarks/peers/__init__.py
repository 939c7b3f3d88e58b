"""The crawlers we are compared with: one table, a runner program each, all with the same words: START_URL PART OUT
CONCURRENCY.
"""

from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """A crawler to compare with; *command* is empty where it is not installed."""

    name: str
    command: tuple[str, ...]
    hint: str


def python_peer(name: str, venv: Path | None, package: str) -> Peer:
    """A peer that is a Python package in a virtual environment of its own."""
    python = venv / "bin" / "python" if venv else None
    installed = (
        python and python.exists() and any(venv.glob(f"lib/python3*/site-packages/{package}")) if venv else False
    )
    command = (str(python), str(_HERE / f"run_{name}.py")) if installed else ()
    return Peer(name, command, f"pip install {package} into a virtual environment and give it by --peers-venv")


def binary_peer(name: str, path: Path | None, hint: str) -> Peer:
    """A peer that is built from its folder here."""
    return Peer(name, (str(path),) if path and path.exists() else (), hint)


def find(venv: Path | None, colly: Path | None, spider: Path | None) -> list[Peer]:
    """All peers, installed or not."""
    return [
        python_peer("scrapy", venv, "scrapy"),
        python_peer("crawlee", venv, "crawlee"),
        binary_peer("colly", colly, "go build in benchmarks/peers/colly, then --colly"),
        binary_peer("spider-rs", spider, "cargo build --release in benchmarks/peers/spider, then --spider"),
    ]
