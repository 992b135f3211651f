"""Seal: a signed statement about which events existed at one moment."""

from django.db import models

from audit.models.appendonly import AppendOnlyModel, AppendOnlyQuerySet


class Seal(AppendOnlyModel):
    """The signed Merkle root over all events with ids from first_id to last_id; written by `audit.sealing`."""

    n = models.BigIntegerField(primary_key=True)
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    count = models.PositiveIntegerField()
    # Ids in the range that no event has (inserts rolled back), as JSON [[from, to], …]: so a missing row has a name.
    gaps = models.TextField()
    merkle_root = models.BinaryField(max_length=32)
    prev_seal_hash = models.BinaryField(max_length=32)
    sealed_at = models.DateTimeField()
    signature = models.BinaryField(max_length=64)
    key_id = models.CharField(max_length=16)

    objects = AppendOnlyQuerySet["Seal"].as_manager()

    class Meta:
        ordering = ["-n"]
        base_manager_name = "objects"

    def __str__(self) -> str:
        return f"seal {self.n}: events {self.first_id} to {self.last_id}"
