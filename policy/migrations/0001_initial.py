import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

from registry import revision, triggers

REVIEWS_STAY = (
    triggers.Refusal(
        name="a_review_stays_as_it_was_given",
        table="policy_review",
        event="UPDATE",
        when="TRUE",
        message="A review stays as it was given; give another one.",
    ),
    triggers.Refusal(
        name="a_review_of_a_published_version_is_kept",
        table="policy_review",
        event="DELETE",
        when="(SELECT state FROM registry_toolkitversion WHERE id = OLD.version_id {lock}) <> 'draft'",
        message="The reviews of a published version are kept.",
    ),
)


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("registry", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Agent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "name",
                    models.CharField(
                        max_length=64,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^[A-Za-z0-9][A-Za-z0-9._-]*\\Z", "Use letters, digits, dot, dash and underscore."
                            )
                        ],
                    ),
                ),
                ("is_active", models.BooleanField(default=True)),
                ("sealed_jwt_secret", models.BinaryField(null=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        help_text="The person who answers for this agent.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="agents_owned",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "user",
                    models.OneToOneField(
                        editable=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="agent",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Credential",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("prefix", models.CharField(max_length=16, unique=True)),
                ("hash", models.CharField(max_length=64)),
                ("label", models.CharField(blank=True, max_length=100)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="credentials", to="policy.agent"
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("hash__regex", "^[0-9a-f]{64}$")),
                        name="credential_keeps_a_sha256_not_a_key",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("answer", models.CharField(choices=[("approve", "Approve"), ("refuse", "Refuse")], max_length=8)),
                ("note", models.TextField(blank=True, default="")),
                ("digest", models.CharField(max_length=71)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "reviewer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reviews",
                        to="registry.toolkitversion",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("digest", ""), _negated=True), name="a_review_names_what_was_read"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("answer", "approve"), models.Q(("note", ""), _negated=True), _connector="OR"
                        ),
                        name="a_refused_review_says_why",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("answer__in", ["approve", "refuse"])), name="a_review_approves_or_refuses"
                    ),
                ],
            },
        ),
        triggers.install(*REVIEWS_STAY),
        revision.watch("policy_agent"),
        revision.watch("policy_credential"),
    ]
