"""The lab, its agent and its approvers, as the tests of execution know them."""

from tests.execution.conftest import (  # noqa: F401
    ana,
    at_once,
    ben,
    call,
    caller,
    lab,
    lab_folder,
    ledger,
    people,
    unsent,
)
from tests.protocols.conftest import hands, publish, robot, stranger, toolkits  # noqa: F401
