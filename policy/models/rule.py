"""Rule: for whom, on what, when, with which effect."""

from django.db import models
from django.db.models import Q

from policy.models.revision import Revision
from registry.risk import RiskLevel


class Rule(models.Model):
    """One line of a policy revision; empty lists mean anyone and anything."""

    class Effect(models.TextChoices):
        ALLOW = "allow", "Allow"
        DENY = "deny", "Deny"
        ASK = "ask", "Ask a person"

    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="rules")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=120)
    agents = models.JSONField(default=list, blank=True)
    groups = models.JSONField(default=list, blank=True)
    tools = models.JSONField(default=list, blank=True)  # "Toolkit.Tool", "Toolkit.*", "*"
    capabilities = models.JSONField(default=list, blank=True)
    risk_at_least = models.PositiveSmallIntegerField(null=True, blank=True, choices=RiskLevel.choices)
    when = models.TextField(blank=True, default="")
    effect = models.CharField(max_length=5, choices=Effect.choices)
    approvers = models.CharField(max_length=150, blank=True, default="")  # a group; empty: whoever may approve
    quorum = models.PositiveSmallIntegerField(null=True, blank=True)
    decide_within = models.PositiveIntegerField(null=True, blank=True)  # seconds
    run_within = models.PositiveIntegerField(null=True, blank=True)  # seconds
    per_minute = models.PositiveIntegerField(null=True, blank=True)
    per_day = models.PositiveIntegerField(null=True, blank=True)
    at_once = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["revision", "position"]
        constraints = [
            models.UniqueConstraint(fields=["revision", "position"], name="one_rule_per_place_in_a_revision"),
            models.UniqueConstraint(fields=["revision", "name"], name="one_rule_per_name_in_a_revision"),
            models.CheckConstraint(
                name="a_rule_allows_denies_or_asks", condition=Q(effect__in=["allow", "deny", "ask"])
            ),
            models.CheckConstraint(
                name="only_a_rule_that_asks_says_whom",
                condition=Q(effect="ask", quorum__gte=1, decide_within__gte=1, run_within__gte=1)
                | (
                    ~Q(effect="ask")
                    & Q(approvers="", quorum__isnull=True, decide_within__isnull=True, run_within__isnull=True)
                ),
            ),
            models.CheckConstraint(
                name="a_rule_that_denies_has_no_limits",
                condition=~Q(effect="deny") | Q(per_minute__isnull=True, per_day__isnull=True, at_once__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return self.name
