"""Pack: a file of evidence or of events that someone asked for, with its progress; kept for a day."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from registry.ids import new_id


class Pack(models.Model):
    """Made by a request, written by a worker; only who asked for it may have it."""

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        RUNNING = "running", "Running"
        DONE = "done", "Done"
        FAILED = "failed", "Failed"

    class Form(models.TextChoices):
        ZIP = "zip", "Evidence pack"
        JSONL = "jsonl", "JSON lines"
        CSV = "csv", "CSV"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    form = models.CharField(max_length=5, choices=Form.choices, default=Form.ZIP)
    call = models.ForeignKey("execution.Call", on_delete=models.PROTECT, null=True, related_name="+", db_index=False)
    filters = models.JSONField(default=dict)
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    total = models.PositiveIntegerField(default=0)  # events to be written
    done = models.PositiveIntegerField(default=0)
    sight = models.CharField(max_length=64, blank=True, default="")  # what decided, when it was made, who sees what
    size = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True, default="")
    error = models.CharField(max_length=300, blank=True, default="")
    attempts = models.PositiveSmallIntegerField(default=0)  # workers that took it; each one's number is its fence
    lease_until = models.DateTimeField(null=True)  # a worker not heard of by then is lost
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    agent = models.ForeignKey("policy.Agent", on_delete=models.CASCADE, null=True, related_name="+", db_index=False)
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="a_pack_that_ended_says_when",
                condition=Q(state__in=["waiting", "running"]) | Q(finished_at__isnull=False),
            ),
            models.CheckConstraint(
                name="exactly_a_running_pack_has_a_lease",
                condition=Q(state="running", lease_until__isnull=False)
                | (~Q(state="running") & Q(lease_until__isnull=True)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_form_display()} about {f'call {self.call_id}' if self.call_id else 'events'}"

    @property
    def is_open(self) -> bool:
        return self.state in (self.State.WAITING, self.State.RUNNING)

    @property
    def percent(self) -> int:
        return 100 if self.state == self.State.DONE else min(99, 100 * self.done // self.total) if self.total else 0

    @property
    def filename(self) -> str:
        """What a browser is told to call it."""
        what = f"call-{self.call_id}" if self.call_id else str(self.pk)
        return f"placet-{'evidence' if self.form == self.Form.ZIP else 'events'}-{what}.{self.form}"
