"""Breaker: a tool that failed so often in a row that it is left alone for a while."""

from django.db import models
from django.db.models import Q


class Breaker(models.Model):
    """One row for a tool of a version that ever failed; most of them are closed, and their calls go through."""

    class State(models.TextChoices):
        CLOSED = "closed", "Closed"
        OPEN = "open", "Open"

    tool = models.OneToOneField("registry.Tool", on_delete=models.CASCADE, related_name="breaker")
    state = models.CharField(max_length=6, choices=State.choices, default=State.CLOSED)
    failures = models.PositiveIntegerField(default=0)  # in a row, as far as is known
    since = models.DateTimeField(null=True)  # the first of them
    code = models.CharField(max_length=40, default="", blank=True)  # of the last one
    opened_at = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True)  # when one call may try
    trial_until = models.DateTimeField(null=True)  # that one is on its way, at most so long

    class Meta:
        ordering = ["-state", "-opened_at"]
        constraints = [
            models.CheckConstraint(
                name="only_an_open_breaker_says_since_when_and_until_when",
                condition=Q(state="open", opened_at__isnull=False, retry_at__isnull=False)
                | Q(state="closed", opened_at=None, retry_at=None, trial_until=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} is {self.state}"
