"""Source: the files of a Python toolkit, as one bundle named by its digest."""

from django.db import models
from django.db.models.functions import Now

from registry.models.toolkit import Toolkit


class Source(models.Model):
    """The exact code a version runs, kept in the database so that every worker has it."""

    toolkit = models.ForeignKey(Toolkit, on_delete=models.CASCADE, related_name="sources")
    digest = models.CharField(max_length=71)  # sha256:…
    content = models.BinaryField()
    size = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["toolkit", "digest"], name="a_toolkit_keeps_each_source_once"),
        ]

    def __str__(self) -> str:
        return self.digest
