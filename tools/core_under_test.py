"""A pytest plugin: the tests run over the native core in the file NEPHILA_CORE, not over the one of the checkout.

cargo-mutants builds each faulty core into a directory of its own (`make mutants-core`).
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader

NAME = "nephila.native._core"


def _load() -> None:
    loader = ExtensionFileLoader(NAME, os.environ["NEPHILA_CORE"])
    spec = importlib.util.spec_from_loader(NAME, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    loader.exec_module(module)


_load()
