"""RetryBudget: how many further attempts the calls of one tool have left."""

from django.db import models
from django.db.models.functions import Now


class RetryBudget(models.Model):
    """A bucket that fills with time and with calls; written only when a further attempt is wanted."""

    tool = models.OneToOneField("registry.Tool", on_delete=models.CASCADE, related_name="+")
    tokens = models.FloatField()
    filled_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.tool}: {self.tokens:.1f}"
