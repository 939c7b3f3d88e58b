"""The signals that end a program in good order: Ctrl-C, the SIGTERM of a service manager, the SIGHUP of a terminal that
closes.

They reach the whole process group. The main process handles them by `stopped_by`, the other processes ignore them.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncio

STOP_SIGNALS: Final[tuple[signal.Signals, ...]] = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


def handle_stop_signals(
    loop: asyncio.AbstractEventLoop, stop: Callable[[signal.Signals], None]
) -> list[signal.Signals]:
    """`stop` is called for each of the signals, which are returned. A SIGHUP that is ignored already, as under nohup,
    stays ignored."""
    handled = [sig for sig in STOP_SIGNALS if sig.name != "SIGHUP" or signal.getsignal(sig) is not signal.SIG_IGN]
    for number in handled:
        loop.add_signal_handler(number, stop, number)
    return handled


@contextlib.contextmanager
def stopped_by(loop: asyncio.AbstractEventLoop, stop: Callable[[signal.Signals], None]) -> Iterator[None]:
    """`handle_stop_signals` until the block ends."""
    handled = handle_stop_signals(loop, stop)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
