"""Applies the live settings of the topic `settings` to one service program."""

from __future__ import annotations

import logging

import msgspec

from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.live_settings import LOG_LEVEL, check
from nephila.kernel.messages import Setting
from nephila.kernel.topics import SETTINGS

log = logging.getLogger("nephila.programs.service.live_settings")


class LiveSettings:
    """Reads the topic from the start of the bus on. A value that this version does not know is logged and ignored:
    members of two versions run side by side during an upgrade."""

    def __init__(self, bus: Bus) -> None:
        self._default_level = logging.getLogger().level
        bus.subscribe(SETTINGS, "program", self._on_delivery, credits=100)

    def _on_delivery(self, delivery: Delivery) -> None:
        self.apply(delivery.message)
        delivery.ack()

    def apply(self, setting: Setting) -> None:
        """Apply a change."""
        value = None if setting.deleted else msgspec.json.decode(setting.value)
        if problem := check(setting.name, value):
            log.warning("ignored: %s", problem)
        elif setting.name == LOG_LEVEL:
            logging.getLogger().setLevel(self._default_level if value is None else value.upper())
            log.info("log level: %s", value or "default")
