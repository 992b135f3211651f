"""Session and Pull: an outside worker that serves toolkits, and each attempt of a call that it took."""

import secrets

from django.db import models
from django.db.models.functions import Now


def new_key() -> str:
    return f"ses_{secrets.token_urlsafe(18)}"


class Session(models.Model):
    """One outside worker at work; only the agent that opened it knows it."""

    id = models.CharField(primary_key=True, max_length=40, default=new_key, editable=False)
    agent = models.ForeignKey("policy.Agent", on_delete=models.CASCADE, related_name="sessions", db_index=False)
    toolkits = models.ManyToManyField("registry.Toolkit", related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())  # now and then: a worker asks all the time

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["agent", "-created_at"], name="sessions_of_an_agent"),
            models.Index(fields=["seen_at"], name="sessions_by_last_sign"),
        ]

    def __str__(self) -> str:
        return self.id


class Pull(models.Model):
    """One attempt in a session's hands: the lock that its heartbeats keep, as long as the call has this fence."""

    call = models.ForeignKey("execution.Call", on_delete=models.PROTECT, related_name="pulls", db_index=False)
    fence = models.PositiveIntegerField()
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="pulls")
    agent = models.ForeignKey("policy.Agent", on_delete=models.CASCADE, related_name="+", db_index=False)
    toolkit = models.ForeignKey("registry.Toolkit", on_delete=models.PROTECT, related_name="+", db_index=False)
    claimed_at = models.DateTimeField(db_default=Now())
    deadline = models.DateTimeField()
    is_offered_again = models.BooleanField(default=False)  # the session knows that this attempt is over
    refused = models.PositiveIntegerField(default=0)  # answers that came too late

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["call", "fence"], name="one_pull_per_call_and_fence")]
        indexes = [models.Index(fields=["claimed_at"], name="pulls_by_age")]

    def __str__(self) -> str:
        return f"attempt {self.fence} of {self.call_id} in {self.session_id}"
