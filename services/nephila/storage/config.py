"""Settings of the storage service."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from nephila.kernel.runtime.config import Positive, Secret
from nephila.kernel.topics import DEFAULT_PARTITIONS


class StorageConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Outputs, flushes and limits of storage."""

    directory: Path
    """Directory of nephila.db and all files; created if absent."""

    formats: tuple[str, ...] = ("sqlite",)
    """Outputs (docs/outputs.md), and the database sqlite or postgres, which is always written."""

    store: Secret = ""
    """URL of a PostgreSQL database for the rows, postgresql://user@host:5432/database. Several with spaces between
    them: each has the rows of a part of the hosts; their number and order stay. Empty: nephila.db in `directory`."""

    partition_by: Literal["", "day"] = ""
    """day: the tables `pages` and `fetches` of `store` have one partition per UTC day. Existing tables are converted at
    the start, which copies their rows. Empty: as the database is."""

    retention: str = ""
    """Age at which whole partitions are dropped, such as 90d: pages by their newest fetch, with their links and items.
    Longer than the longest recrawl interval. Needs partitions by day. Empty: nothing is dropped."""

    writer: str = ""
    """Name of this writer, under which a shared database stores the lengths of its files."""

    archive: str = ""
    """Part of the names of WARC files, such as the job and its start, so that the archives of many crawls can share
    a directory."""

    partitions: Positive = DEFAULT_PARTITIONS
    """Partitions of the keyed topics, the same for all services; determines the partition of the receipt of a dead
    letter."""

    patience_s: float = 300.0
    """Maximum time to wait for a lost database before the run fails; 0 = no limit."""

    wait_at_start: bool = False
    """Wait also for a database that is unreachable at the start; the service is not ready meanwhile. For services
    over Kafka."""

    batch_rows: Positive = 256
    """Rows that start a flush: they share one fsync and a few statements."""

    batch_bytes: Positive = 16 * 1024 * 1024
    """Bytes of text and bodies that start a flush, so that 256 pages of 10 MB are not held at once."""

    flush_interval_s: float = 0.25
    """Maximum time from the first waiting record to the start of a flush: the delay of receipts."""

    credits: Positive = 2048
    """Records that are received and not yet durable: the memory bound, 0.5 s at 4,000 pages/s."""

    raw_credits: Positive = 8192
    """Raw pages that wait for their record; more than `credits`, since a page is received before it is parsed."""

    fsync: bool = True
    """false: the operating system decides when data reaches the disk, and a power cut may lose the last seconds.
    For tests and benchmarks."""

    wal_bytes: int = 16 * 1024 * 1024
    """Size of the write-ahead log above which it is copied into the database; a small log fits the CPU's cache."""

    warc_bytes: int = 1_000_000_000
    """Size above which the next WARC file begins."""

    raw_bytes: int = 1_000_000_000
    """Size above which the next file of bodies (format raw) begins."""

    raw_total_bytes: int = 100_000_000_000
    """Maximum size of all files of bodies, compressed. Pages beyond it are listed without bodies, and the log
    contains a warning. 0 = no limit."""

    raw_wait_s: float = 60.0
    """Maximum time that a raw page waits for its record; then it is written without. Over Kafka another member may
    have received the record."""

    near_copy_entries: Annotated[int, msgspec.Meta(ge=1, le=2**31)] = 1_000_000
    """Pages in the index of near-copies, all jobs together: 16 bytes each, taken with the first page that is looked up.
    Beyond it the oldest entries leave, and later copies of their pages are not recognised."""

    near_copy_distance: Annotated[int, msgspec.Meta(ge=0, le=3)] = 3
    """Greatest number of bits, of 64, in which the simhashes of near-copies differ."""

    chunk_chars: Positive = 2000
    """Maximum characters of a chunk (format chunks), overlap included; some 500 tokens of English."""

    chunk_overlap: int = 200
    """Characters at the end of a chunk that the next one of the section repeats; at most half of `chunk_chars`."""

    dataset: str = ""
    """Place of the Parquet dataset (format dataset): a directory, or s3://bucket/path, gs://, az:// with the extra s3.
    Credentials come from the variables of the cloud, such as AWS_ACCESS_KEY_ID."""

    item_topics: Literal["platforms", "rules"] = "platforms"
    """Items that a service over Kafka publishes on the topics items.NAME: those of platforms of keyword schemes, or
    those of all rules."""

    opensearch_url: Secret = ""
    """URL of an OpenSearch or Elasticsearch server (format opensearch), https://user:password@host:9200."""

    opensearch_index: str = "nephila-pages"
    """Its index; the server creates it with the first document, by its templates."""

    parquet_rows: Positive = 50_000
    """Rows of a Parquet file, also in a dataset. It is written between two flushes, so a larger file causes a longer
    pause."""
