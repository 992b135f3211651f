"""Whether a tool's endpoint keeps Tool Contract v1: one list of checks, asked of it through the egress guard."""

from execution.conformance.judging import judge
from execution.conformance.probe import Probe
from execution.conformance.verdict import Outcome, Verdict

__all__ = ["Outcome", "Probe", "Verdict", "judge"]
