"""CHECKS: what is asked about every call, in order. A check is a function from Question to Finding."""

from collections.abc import Callable

from policy.checks.permission import permission
from policy.checks.risk import risk
from policy.decision import Finding
from policy.question import Question

CHECKS: tuple[Callable[[Question], Finding], ...] = (permission, risk)
