"""Event: one thing that happened to one subject, chained to what happened to it before."""

from django.db import models

from audit.models.appendonly import AppendOnlyModel, AppendOnlyQuerySet
from audit.visible import visible


class Event(AppendOnlyModel):
    """Who did what to which subject, with what outcome; written by `audit.trail`, together with the fact itself."""

    id = models.BigAutoField(primary_key=True)
    subject_kind = models.CharField(max_length=40)
    subject_id = models.CharField(max_length=255)
    seq = models.PositiveIntegerField()
    event = models.CharField(max_length=100)
    actor = models.CharField(max_length=255)
    at = models.DateTimeField()
    outcome = models.CharField(max_length=40)
    # Canonical JSON as text: the hash covers these exact bytes, and a jsonb column would rewrite them.
    detail = models.TextField()
    trace_id = models.CharField(max_length=64, blank=True)
    prev_hash = models.BinaryField(max_length=32)
    hash = models.BinaryField(max_length=32)
    key_id = models.CharField(max_length=16)

    objects = AppendOnlyQuerySet["Event"].as_manager()

    class Meta:
        ordering = ["-id"]
        base_manager_name = "objects"
        constraints = [
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id", "seq"], name="event_seq_is_used_once_per_subject"
            ),
        ]
        # Every insert pays for each of these, and a call writes several rows; the primary key serves "newest first".
        indexes = [
            models.Index(fields=["event", "id"], name="event_by_name"),
            models.Index(fields=["actor", "id"], name="event_by_actor"),
            models.Index(fields=["trace_id"], name="event_by_trace", condition=~models.Q(trace_id="")),
        ]

    def __str__(self) -> str:
        return visible(f"{self.subject_kind} {self.subject_id} #{self.seq}: {self.event}")
