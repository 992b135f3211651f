"""TotalledSpan and CallTotal: calls that can change no more, counted once so that pages need not count them again."""

from django.db import models
from django.db.models import Q


class TotalledSpan(models.Model):
    """An hour or a day whose calls have all ended and are counted; `totals.py` alone writes it."""

    start = models.DateTimeField()
    hours = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["hours", "start"], name="a_span_is_totalled_once"),
            models.CheckConstraint(name="a_span_is_an_hour_or_a_day", condition=Q(hours__in=[1, 24])),
        ]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H:%M}, {self.hours} h"


class CallTotal(models.Model):
    """How the calls of one tool by one agent went in one span; what never found a tool has none."""

    span = models.ForeignKey(TotalledSpan, on_delete=models.CASCADE, related_name="totals")
    agent = models.ForeignKey("policy.Agent", on_delete=models.PROTECT, related_name="+", db_index=False)
    tool = models.ForeignKey("registry.Tool", on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    succeeded = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)
    dropped = models.PositiveIntegerField(default=0)  # expired or cancelled: nothing ran to an end
    durations = models.JSONField(default=dict)  # how many runs took how long, by `totals.step_of`

    def __str__(self) -> str:
        return f"{self.tool} in {self.span}"
