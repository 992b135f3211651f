"""Notice: a message to people that waits to be sent, was sent, or was given up."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Notice(models.Model):
    """Written in the transaction of the fact it tells of, sent afterwards, tried again when it fails."""

    class Channel(models.TextChoices):
        MAIL = "mail", "E-mail"
        WEBHOOK = "webhook", "Webhook"

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        SENT = "sent", "Sent"
        FAILED = "failed", "Given up"

    kind = models.CharField(max_length=40)  # "approval.asked", "break_glass.used", ...
    channel = models.CharField(max_length=7, choices=Channel.choices)
    target = models.CharField(max_length=500)  # an address or a URL
    content = models.JSONField()
    state = models.CharField(max_length=7, choices=State.choices, default=State.WAITING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField(db_default=Now())
    error = models.CharField(max_length=300, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="only_a_sent_notice_says_when_it_was_sent",
                condition=Q(state="sent", sent_at__isnull=False) | (~Q(state="sent") & Q(sent_at=None)),
            ),
        ]
        indexes = [models.Index(fields=["next_at"], name="notices_to_send", condition=Q(state="waiting"))]

    def __str__(self) -> str:
        return f"{self.kind} by {self.channel}"
