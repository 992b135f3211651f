"""From a probe to its verdicts: every check of every group, in order, whatever the one before found."""

from collections.abc import Iterator

from audit.redaction import Redactor
from execution.conformance.groups import GROUPS, Check
from execution.conformance.probe import Probe
from execution.conformance.verdict import Failed, NotApplicable, Outcome, Verdict


def judge(probe: Probe) -> Iterator[Verdict]:
    """The verdicts as they are found; EgressDenied if the endpoint may not be asked at all."""
    for group, checks in GROUPS.items():
        for check in checks:
            yield _verdict(group, check, probe)


def _verdict(group: str, check: Check, probe: Probe) -> Verdict:
    try:
        outcome, reason = Outcome.PASS, check(probe)
    except Failed as error:
        outcome, reason = Outcome.FAIL, str(error)
    except NotApplicable as error:
        outcome, reason = Outcome.NOT_APPLICABLE, str(error)
    needles = {name: value.removeprefix("Bearer ") for name, value in probe.credentials.items()}
    return Verdict(group=group, check=check.__doc__ or "", outcome=outcome, reason=Redactor(needles).text(reason))
