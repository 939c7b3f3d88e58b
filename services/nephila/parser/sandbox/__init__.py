"""Child processes for what cannot be bounded beforehand: PDF, XPath of rules, scripts. They are killed at their limits.

`Task` names the work and its limits, `Sandbox` runs it for a service, `BlockingSandbox` for a command; `Broken` says
why there is no result.
"""

from nephila.parser.sandbox.blocking import BlockingSandbox
from nephila.parser.sandbox.pool import Sandbox
from nephila.parser.sandbox.task import Broken, Task

__all__ = ["BlockingSandbox", "Broken", "Sandbox", "Task"]
