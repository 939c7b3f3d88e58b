"""Job files of the command line: reading, checking, and the seed files they name."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from nephila.kernel.documents.job_document import JobDocument, distinct, from_json, load
from nephila.kernel.documents.yaml import MAX_BYTES
from nephila.kernel.runtime.errors import UsageError
from nephila.kernel.seeds import STDIN, read_seeds

SUFFIXES = (".yaml", ".yml", ".json")
"""Ends of the names of job files in a folder."""


def read_jobs(names: Iterable[str]) -> list[JobDocument]:
    """All jobs of some files and folders (- is standard input), each name once. Raises `UsageError` in one line.

    Names of seed files are made absolute: they are relative to the job file.
    """
    files = [file for name in names for file in _files(name)]
    return distinct(_located(document, name) for name in files for document in load(_read(name), _title(name)))


def read_sources(document: JobDocument, refused: list[tuple[str, str]]) -> Iterator[str]:
    """URLs of a job's files of seeds, lazily; lines that are not URLs are added to `refused`."""
    for name in document.files:
        yield from read_seeds(name, lambda line, reason: refused.append((line, reason)), "the seeds ")


def _files(name: str) -> list[str]:
    """The file, or the YAML and JSON files of a folder and of the folders in it, in the order of their names."""
    folder = Path(name)
    if name == STDIN or not folder.is_dir():
        return [name]
    files = sorted(str(path) for path in folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
    if not files:
        raise UsageError(f"{name} has no file {', '.join(f'*{suffix}' for suffix in SUFFIXES)}")
    return files


def _title(name: str) -> str:
    return "standard input" if name == STDIN else name


def _read(name: str) -> bytes:
    try:
        if name == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with Path(name).open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"cannot read {name[:100]!a}: not a file name") from None


def _located(document: JobDocument, name: str) -> JobDocument:
    if not document.files:
        return document
    beside = Path.cwd() if name == STDIN else Path(name).absolute().parent
    content = document.content
    seeds = [{"file": str(beside / seed["file"])} if "file" in seed else seed for seed in content["spec"]["seeds"]]
    return from_json({**content, "spec": {**content["spec"], "seeds": seeds}}, document.location)
