"""`--ranks DIR`: the domains of an exported graph, for the order of a later crawl."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nephila.kernel.documents.budget_schema import MOST_RANKS
from nephila_stores.formats.parquet_file import require_arrow

DOMAINS: Final = "domains.parquet"


def domains_by_rank(name: str) -> list[str]:
    """The first `MOST_RANKS` domains of a directory of `nephila hosts --graph`, or of its file `domains.parquet`.

    Raises `ValueError` with the reason for one that has none. Memory for these domains alone.
    """
    arrow = require_arrow()
    path = Path(name) / DOMAINS if Path(name).is_dir() else Path(name)
    try:
        with arrow.parquet.ParquetFile(path) as file:
            if "domain" not in file.schema_arrow.names:
                raise ValueError(f"{path} has no column domain: {_EXPORT}")
            batch = next(file.iter_batches(MOST_RANKS, columns=["domain"]), None)
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist: {_EXPORT}") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from None
    except arrow.ArrowException:
        raise ValueError(f"{path} is no Parquet file: {_EXPORT}") from None
    domains = batch.column(0).to_pylist() if batch is not None else []
    if not all(isinstance(domain, str) for domain in domains):
        raise ValueError(f"{path} has domains that are no texts: {_EXPORT}")
    return domains


_EXPORT: Final = "nephila hosts --graph DIR writes a directory with ranks"
