"""Agent: who is calling, and the user that holds its permissions."""

import re

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Agent(models.Model):
    """A program that calls tools. Its permissions hang on a user of its own that can never log in."""

    name = models.CharField(
        max_length=64,
        unique=True,
        validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z", "Use letters, digits, dot, dash and underscore.")],
    )
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="agent", editable=False
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="agents_owned",
        help_text="The person who answers for this agent.",
    )
    person = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="own_agent",
        help_text="The person who tries tools at the portal through this agent; it has no keys.",
    )
    is_active = models.BooleanField(default=True)
    sealed_jwt_secret = models.BinaryField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
