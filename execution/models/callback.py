"""Callback: the answer that one attempt of a call waits for, from a tool that answers later."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Callback(models.Model):
    """Written before the tool is asked, so that an answer that overtakes our own records finds its call."""

    class State(models.TextChoices):
        """What became of the wait; `callbacks.py` alone moves it, and only once."""

        OPEN = "open", "Open"
        ANSWERED = "answered", "Answered"
        EXPIRED = "expired", "Expired"
        CLOSED = "closed", "Closed"  # the attempt ended in another way

    call = models.ForeignKey("execution.Call", on_delete=models.PROTECT, related_name="callbacks", db_index=False)
    fence = models.PositiveIntegerField()
    request_id = models.CharField(max_length=255)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    endpoint = models.CharField(max_length=2000)
    token_hash = models.CharField(max_length=64)
    sealed_token = models.BinaryField()  # a signature can only be checked with the token itself
    sealed_needles = models.BinaryField(null=True)  # what the answer must not show: secrets of this attempt
    answer_digest = models.CharField(max_length=64, default="", blank=True)
    asked_at = models.DateTimeField(db_default=Now())
    deadline = models.DateTimeField()
    next_poll_at = models.DateTimeField(null=True)  # from when on the call waits
    polls = models.PositiveIntegerField(default=0)
    failed_polls = models.PositiveIntegerField(default=0)
    refused = models.PositiveIntegerField(default=0)  # answers that came too late, or once too often
    sent = models.PositiveBigIntegerField(default=0)
    received = models.PositiveBigIntegerField(default=0)
    upstream_status = models.CharField(max_length=40, default="", blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["call", "fence"], name="one_callback_per_call_and_fence"),
            models.CheckConstraint(
                name="only_an_open_callback_is_looked_for_and_keeps_secrets",
                condition=Q(state="open") | Q(next_poll_at=None, sealed_needles=None),
            ),
        ]
        indexes = [
            models.Index(fields=["request_id"], name="callbacks_of_a_request"),
            models.Index(fields=["deadline"], name="open_callbacks_by_deadline", condition=Q(state="open")),
            models.Index(fields=["next_poll_at"], name="open_callbacks_by_poll", condition=Q(state="open")),
        ]

    def __str__(self) -> str:
        return f"callback of attempt {self.fence} of {self.call_id}"
