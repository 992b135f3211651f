"""Secret: a named value that Placet brings to tools; its versions, and which tools used it."""

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

PART = "[A-Za-z0-9_][A-Za-z0-9_.-]*"
NAME = rf"{PART}(?:/{PART})*"


class Secret(models.Model):
    """What a manifest's `secretRef` names. The value lies in a version, sealed, or outside, where `source` says."""

    class Source(models.TextChoices):
        STORED = "stored", "Stored here, sealed"
        ENV = "env", "Environment variable"
        FILE = "file", "Mounted file"
        VAULT = "vault", "HashiCorp Vault"

    name = models.CharField(
        max_length=128,
        unique=True,
        validators=[RegexValidator(rf"^{NAME}\Z", "Use letters, digits, dot, dash, underscore and single slashes.")],
    )
    source = models.CharField(max_length=8, choices=Source.choices, default=Source.STORED)
    path = models.CharField(  # in Vault, below the mount; empty: the name
        max_length=400,
        default="",
        blank=True,
        validators=[RegexValidator(rf"^{NAME}\Z", "This is not a path in Vault.")],
    )
    description = models.CharField(max_length=400, default="", blank=True)
    toolkits = models.ManyToManyField("registry.Toolkit", related_name="+", blank=True)  # none: any may use it
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(name="only_a_secret_in_vault_has_a_path", condition=Q(path="") | Q(source="vault")),
        ]

    def __str__(self) -> str:
        return self.name


class SecretVersion(models.Model):
    """One value of a stored secret: the newest that is not discarded is used. A discarded one holds nothing."""

    secret = models.ForeignKey(Secret, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    sealed = models.BinaryField(null=True, editable=False)
    keys = models.JSONField(default=list)  # the names in it; a plain text is called "value"
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.CharField(max_length=200)
    discarded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["secret", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["secret", "number"], name="one_version_per_secret_and_number"),
            models.CheckConstraint(
                name="a_version_holds_a_value_until_it_is_discarded",
                condition=Q(sealed__isnull=False, discarded_at=None) | Q(sealed=None, discarded_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number} of {self.secret_id}"


class SecretUse(models.Model):
    """When a tool last got a secret, to the minute."""

    secret = models.ForeignKey(Secret, on_delete=models.CASCADE, related_name="uses")
    tool = models.ForeignKey("registry.Tool", on_delete=models.CASCADE, related_name="+")
    used_at = models.DateTimeField()

    class Meta:
        ordering = ["-used_at"]
        constraints = [models.UniqueConstraint(fields=["secret", "tool"], name="one_last_use_per_secret_and_tool")]

    def __str__(self) -> str:
        return f"{self.tool_id} used {self.secret_id}"
