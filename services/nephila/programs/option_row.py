"""One row of the table of options (options.py): the field that an option sets, its help, and the form of its value."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET

from nephila.programs import option_converters as convert
from nephila.programs.option_fields import JOB, Converter


class Form(StrEnum):
    """The form of a value that is more than a text."""

    N = "N"
    """A number with optional units: 250, 10k, 1e6."""
    SIZE = "SIZE"
    """A size: 500KB, 2MiB; a number is bytes."""
    TIME = "TIME"
    """A duration: 500ms, 1s, 1h30m; a number is seconds."""
    FILE = "FILE"
    """The name of a file. It stays valid when another directory becomes the current one."""
    DIR = "DIR"
    """The name of a directory, likewise."""


N, SIZE, TIME, FILE, DIR = Form


class Option(msgspec.Struct, frozen=True):
    """One row of the table."""

    help: str
    """Text for --help; {words} stands for the words of the field."""
    panel: str
    """Heading in --help."""
    to: str | Mapping[str, Converter | None]
    """Path of the field that has the value of the option (`option_fields`); or paths with a converter each, None where
    a program maps the option together with other facts. The first field is the option's home. Empty: no field."""
    metavar: str = ""
    """Form of the value, also in --help. Empty: the words of the field, or a flag."""
    default: Any = UNSET
    """Left out: the default of the first field that is set to the same value."""
    commands: tuple[str, ...] = ("crawl",)
    """Commands that have the option."""
    least: int | None = None
    """Smallest number. Left out: that of the field."""
    most: int | None = None
    reader: Callable[[str], Any] | None = None
    """Reads the file. A run keeps what it returns, so the file is not needed later."""

    @property
    def fields(self) -> Mapping[str, Converter | None]:
        """Path of each field that the option sets → its converter."""
        return self.to if isinstance(self.to, Mapping) else {self.to: convert.same} if self.to else {}

    @property
    def in_job(self) -> bool:
        """Whether the option's home is the job's document; only an option that was given overrides it."""
        return next(iter(self.fields), "").startswith(f"{JOB}.")

    @property
    def in_service(self) -> bool:
        """Whether services elsewhere (--bootstrap) refuse the option, since it sets more than the job."""
        return any(not path.startswith(f"{JOB}.") for path in self.fields)
