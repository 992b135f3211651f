"""Replay: a draft revision judged over recorded calls, with its progress and what would change."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from registry.ids import new_id


class Replay(models.Model):
    """Made by a request, worked off by a worker."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    revision = models.PositiveIntegerField()
    last = models.PositiveIntegerField()  # how many recorded calls, newest first
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    total = models.PositiveIntegerField(default=0)
    evaluated = models.PositiveIntegerField(default=0)
    result = models.JSONField(null=True)
    error = models.CharField(max_length=300, blank=True, default="")
    attempts = models.PositiveSmallIntegerField(default=0)  # workers that took it; each one's number is its fence
    lease_until = models.DateTimeField(null=True)  # a worker not heard of by then is lost
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="a_replay_that_ended_says_when",
                condition=Q(state__in=["waiting", "running"]) | Q(finished_at__isnull=False),
            ),
            models.CheckConstraint(
                name="exactly_a_running_replay_has_a_lease",
                condition=Q(state="running", lease_until__isnull=False)
                | (~Q(state="running") & Q(lease_until__isnull=True)),
            ),
        ]

    def __str__(self) -> str:
        return f"revision {self.revision} over {self.last} calls"
