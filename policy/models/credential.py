"""Credential: a hashed key, shown once."""

from django.db import models
from django.db.models import Q


class CredentialQuerySet(models.QuerySet["Credential"]):
    def in_force(self) -> "CredentialQuerySet":
        """Keys that open the door now, by the database's clock."""
        return self.filter(
            Q(expires_at=None) | Q(expires_at__gt=models.functions.Now()), revoked_at=None, agent__is_active=True
        )


class Credential(models.Model):
    """One key of an agent. The key itself is nowhere: only its SHA-256, found by a public prefix."""

    agent = models.ForeignKey("policy.Agent", on_delete=models.CASCADE, related_name="credentials")
    prefix = models.CharField(max_length=16, unique=True)
    hash = models.CharField(max_length=64)
    label = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = CredentialQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                name="credential_keeps_a_sha256_not_a_key", condition=Q(hash__regex=r"^[0-9a-f]{64}$")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.prefix}…"
