"""How long a state machine runs: some hundred operations by default, or as many as a long run asks for."""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test


def run(machine: type[RuleBasedStateMachine], examples: int, steps: int, *, long: bool) -> None:
    """Run a machine; a short run does the same each time, a long one looks elsewhere and says where it was: the
    numbers, set again, repeat it."""
    if long:
        number = int(os.environ.get("NEPHILA_LONG_SEED") or random.getrandbits(32))
        print(f"NEPHILA_LONG_SEED={number} PYTHONHASHSEED={os.environ.get('PYTHONHASHSEED', 'random')}")
        machine = seed(number)(machine)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=not long,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
