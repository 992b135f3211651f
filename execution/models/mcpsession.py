"""McpSession: what a client of MCP's older revisions said of itself when it began."""

from django.db import models
from django.db.models.functions import Now


class McpSession(models.Model):
    """One conversation, bound to the agent that began it; written by `protocols/mcp/sessions.py` alone."""

    key = models.CharField(max_length=64, unique=True)  # a hash of the id, which only the client knows
    agent = models.ForeignKey("policy.Agent", on_delete=models.CASCADE, related_name="+", db_index=False)
    version = models.CharField(max_length=10)
    capabilities = models.JSONField(default=dict)
    client = models.CharField(max_length=200, default="", blank=True)
    log_level = models.CharField(max_length=9, default="info")
    opened_at = models.DateTimeField(db_default=Now())
    seen_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["agent", "seen_at"], name="mcp_sessions_of_an_agent"),
            models.Index(fields=["seen_at"], name="mcp_sessions_by_last_use"),
        ]

    def __str__(self) -> str:
        return f"MCP session of {self.client or 'a client'} ({self.version})"
