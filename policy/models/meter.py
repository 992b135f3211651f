"""Meter: how much of a limit one agent has used on one tool."""

from django.db import models

from policy.models.agent import Agent


class Meter(models.Model):
    """One row per agent, tool name and window; the window that has passed starts again at nought."""

    class Window(models.TextChoices):
        MINUTE = "minute"
        DAY = "day"

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="+", db_index=False)
    tool = models.CharField(max_length=130)  # "Toolkit.Tool": a limit holds over all its versions
    window = models.CharField(max_length=6, choices=Window.choices)
    started_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["agent", "tool", "window"], name="one_meter_per_agent_tool_and_window"),
        ]

    def __str__(self) -> str:
        return f"{self.count} per {self.window}"
