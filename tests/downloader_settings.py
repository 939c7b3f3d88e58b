"""Settings of a downloader in short, as tests give them: `per_host=2`."""

from __future__ import annotations

from typing import Any

from nephila.downloader.config import DownloaderConfig
from nephila.kernel.runtime.config import replaced, settings


def downloader_config(**values: Any) -> DownloaderConfig:
    """Each name is a path with two underscores for a dot (`dns__ttl_s`), or the last name of a path if only one setting
    has it."""
    paths = {}
    for name, value in values.items():
        path = name.replace("__", ".")
        if path not in settings(DownloaderConfig):
            (path,) = (full for full in settings(DownloaderConfig) if full.endswith(f".{path}"))
        paths[path] = value
    return replaced(DownloaderConfig(), paths)
