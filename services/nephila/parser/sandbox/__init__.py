"""Child processes for work without a known bound: PDF, XPath of rules, scripts. Each is killed at its limits.

`Task` names the work and its limits. `Sandbox` runs tasks for a service, `BlockingSandbox` for a command. `ChildError`
is the reason why a call has no result.
"""

from nephila.parser.sandbox.blocking import BlockingSandbox
from nephila.parser.sandbox.pool import Sandbox
from nephila.parser.sandbox.task import ChildError, Task

__all__ = ["BlockingSandbox", "ChildError", "Sandbox", "Task"]
