"""Attempt: one run of a call, written when it ended."""

from django.db import models


class Attempt(models.Model):
    """What came of one run; `number` is the fence under which it ran."""

    call = models.ForeignKey("execution.Call", on_delete=models.PROTECT, related_name="attempts", db_index=False)
    number = models.PositiveIntegerField()
    where = models.CharField(max_length=100)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField()
    status = models.CharField(max_length=20)  # succeeded, failed, timed_out, cancelled, lost
    code = models.CharField(max_length=40, default="", blank=True)
    detail = models.TextField(default="", blank=True)
    retry_after = models.FloatField(null=True)  # seconds until the next attempt, if there is one
    sent = models.PositiveBigIntegerField(default=0, db_default=0)  # bytes to the tool over the network
    received = models.PositiveBigIntegerField(default=0, db_default=0)
    upstream_status = models.CharField(max_length=40, default="", db_default="", blank=True)  # "503", "UNAVAILABLE"

    class Meta:
        ordering = ["call", "number"]
        constraints = [
            models.UniqueConstraint(fields=["call", "number"], name="one_attempt_per_call_and_fence"),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.call_id}"
