"""State as the database has it at the moment of asking: open calls, pending approvals, breakers."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.db import DatabaseError
from django.db.models import Count

from execution.models import OPEN, Breaker, Call
from policy.models import Approval

if TYPE_CHECKING:
    from prometheus_client.core import Metric

logger = logging.getLogger(__name__)

MAX_BREAKERS = 300


class State:
    """For a registry of Prometheus: asks when it is asked."""

    def collect(self) -> "Iterator[Metric]":
        from prometheus_client.core import GaugeMetricFamily

        try:
            found = [_open_calls(), _pending(), _breakers()]
        except DatabaseError as error:
            logger.warning("the database did not answer for the metrics: %s", type(error).__name__)
            found = []
        yield GaugeMetricFamily("placet_database_up", "Whether the database answers", value=1 if found else 0)
        yield from found


def _open_calls() -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    counted = dict(Call.objects.filter(state__in=OPEN).order_by().values_list("state").annotate(Count("id")))
    told = GaugeMetricFamily("placet_open_calls", "Calls that have not ended", labels=["state"])
    for state in OPEN:
        told.add_metric([str(state)], counted.get(str(state), 0))
    return told


def _pending() -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    pending = Approval.objects.filter(state=Approval.State.PENDING).count()
    return GaugeMetricFamily("placet_pending_approvals", "Questions that wait for people", value=pending)


def _breakers() -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    told = GaugeMetricFamily("placet_breaker_open", "1 while calls of the tool are turned away", labels=["tool"])
    breakers = Breaker.objects.select_related("tool__version__toolkit").order_by("-state", "-pk")  # open ones first
    for breaker in breakers[:MAX_BREAKERS]:
        told.add_metric([breaker.tool.tool_id], 1 if breaker.state == Breaker.State.OPEN else 0)
    return told
