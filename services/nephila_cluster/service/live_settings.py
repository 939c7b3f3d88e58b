"""Applies the live settings of the topic `settings` to one service program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from nephila.kernel.bus.contract import Bus, Delivery
from nephila.kernel.layout import LAYOUT, LayoutSetting
from nephila.kernel.live_settings import LOG_LEVEL, SettingScope, check, parse_key
from nephila.kernel.messages import Setting
from nephila.kernel.topics import SETTINGS

log = logging.getLogger("nephila_cluster.service.live_settings")

Apply = Callable[[Any], None]
"""Applies a value; None: the default."""


class LiveSettings:
    """Reads the topic from the start of the bus on. A value that this version does not know is logged and ignored:
    members of two versions run side by side during an upgrade. A setting of this member has precedence over that of all
    members; when it is taken back, that of all counts again."""

    def __init__(
        self,
        bus: Bus,
        me: SettingScope,
        of_service: Callable[[], Mapping[str, Apply]],
        set_layout: Callable[[LayoutSetting], None],
    ) -> None:
        """`of_service`: the settings that the service reads; called once it is built. `set_layout` gets the number of
        partitions after a growth."""
        self._set_layout = set_layout
        self._default_level = logging.getLogger().level
        self._me = me
        self._of_service = of_service
        self._values: dict[tuple[str, bool], Any] = {}
        """(name, of this member alone) → value."""
        bus.subscribe(SETTINGS, "program", self._on_delivery, credits=100)

    def _on_delivery(self, delivery: Delivery) -> None:
        setting: Setting = delivery.message
        if setting.name == LAYOUT:
            self._set_layout(msgspec.json.decode(setting.value, type=LayoutSetting))
        else:
            self.apply(setting)
        delivery.ack()

    def apply(self, setting: Setting) -> None:
        """Apply a change."""
        value = None if setting.deleted else msgspec.json.decode(setting.value)
        if problem := check(setting.name, value):
            log.warning("ignored: %s", problem)
            return
        scope, name = parse_key(setting.name)
        if scope not in (SettingScope(), self._me):
            return
        self._values[name, scope == self._me] = value
        own = self._values.get((name, True))
        value = own if own is not None else self._values.get((name, False))
        apply = self._set_level if name == LOG_LEVEL else self._of_service().get(name)
        if apply is not None:
            apply(value)
            log.info("%s: %s", name.replace("_", " "), "default" if value is None else value)

    def _set_level(self, value: str | None) -> None:
        logging.getLogger().setLevel(self._default_level if value is None else value.upper())
