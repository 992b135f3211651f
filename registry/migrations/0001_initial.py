"""Toolkits, versions and tools; the triggers that freeze them; the revision that caches rely on."""

import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import registry.models.exactjson
import registry.models.tool
from django.conf import settings
from django.db import migrations, models
from registry import freezing, revision, triggers


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("guardian", "0003_remove_groupobjectpermission_guardian_gr_content_ae6aec_idx_and_more"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Capability",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=64, unique=True)),
                ("description", models.TextField(blank=True, default="")),
            ],
            options={
                "verbose_name_plural": "capabilities",
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("name__regex", "\\A[a-z][a-z0-9_]*(\\.[a-z][a-z0-9_]*)+\\Z")),
                        name="capability_name_is_dotted_lower_case",
                        violation_error_message="A capability is lower-case words joined by dots, such as mail.send.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Toolkit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=62)),
                ("title", models.CharField(blank=True, default="", max_length=200)),
                ("description", models.TextField(blank=True, default="")),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="owned_toolkits",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"constraints": [models.UniqueConstraint(
                django.db.models.functions.text.Lower("name"),
                name="toolkit_names_differ_by_more_than_case",
                violation_error_message="A toolkit of this name exists (case does not count).",
            ), models.CheckConstraint(
                condition=models.Q(("name__regex", "\\A[A-Za-z][A-Za-z0-9_]*\\Z")),
                name="toolkit_name_is_ascii_letters_digits_underscores",
                violation_error_message="A name starts with a letter; ASCII letters, digits and underscores follow.",
            )], 
                "ordering": ["name"],
                "permissions": [
                    ("call_toolkit", "Can call the tools"),
                    ("publish_toolkit", "Can publish versions"),
                    ("review_toolkit", "Can review versions before they are published"),
                    ("approve_toolkit", "Can approve calls"),
                    ("audit_toolkit", "Can read the evidence of calls"),
                    ("serve_toolkit", "Can serve calls as an outside worker"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Source",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("digest", models.CharField(max_length=71)),
                ("content", models.BinaryField()),
                ("size", models.PositiveIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                (
                    "toolkit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="sources", to="registry.toolkit"
                    ),
                ),
            ], options={"constraints": [models.UniqueConstraint(fields=("toolkit", "digest"), name="a_toolkit_keeps_each_source_once")], }),
        migrations.CreateModel(
            name="FlatName",
            fields=[
                ("name", models.CharField(max_length=64, primary_key=True, serialize=False)),
                (
                    "toolkit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="flat_names", to="registry.toolkit"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ToolkitVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("major", models.PositiveIntegerField()),
                ("minor", models.PositiveIntegerField()),
                ("patch", models.PositiveIntegerField()),
                ("title", models.CharField(blank=True, default="", max_length=200)),
                ("description", models.TextField(blank=True, default="")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("published", "Published"),
                            ("deprecated", "Deprecated"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="draft",
                        max_length=12,
                    ),
                ),
                ("digest", models.CharField(blank=True, default="", max_length=71)),
                (
                    "risk",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "Low"), (2, "Medium"), (3, "High"), (4, "Critical")], default=1
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("review_requested_at", models.DateTimeField(blank=True, null=True)),
                ("published_at", models.DateTimeField(blank=True, null=True)),
                ("deprecated_at", models.DateTimeField(blank=True, null=True)),
                ("deprecation_note", models.TextField(blank=True, default="")),
                ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                ("withdrawal_reason", models.TextField(blank=True, default="")),
                (
                    "created_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "edited_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "published_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "reviewed_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="registry.source",
                    ),
                ),
                (
                    "toolkit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="registry.toolkit"
                    ),
                ),
            ],
            options={"constraints": [models.UniqueConstraint(
                fields=("toolkit", "major", "minor", "patch"),
                name="a_toolkit_has_each_version_once",
                violation_error_message="This version of the toolkit exists already.",
            ), models.CheckConstraint(
                condition=models.Q(("major__gte", 0), ("minor__gte", 0), ("patch__gte", 0)),
                name="version_numbers_are_not_negative",
            ), models.CheckConstraint(
                condition=models.Q(
                    ("state", "draft"),
                    models.Q(models.Q(("digest", ""), _negated=True), ("published_at__isnull", False)),
                    _connector="OR",
                ),
                name="a_published_version_has_a_digest_and_a_date",
            ), models.CheckConstraint(
                condition=models.Q(
                    ("state", "draft"),
                    ("risk__lt", 3),
                    models.Q(("edited_by__isnull", True), ("reviewed_by__isnull", False)),
                    models.Q(
                        ("reviewed_by__isnull", False), models.Q(("reviewed_by", models.F("edited_by")), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="a_risky_version_is_published_with_a_second_person",
            ), models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "deprecated"), _negated=True), ("deprecated_at__isnull", False), _connector="OR"
                ),
                name="a_deprecated_version_says_since_when",
            ), models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "withdrawn"), _negated=True),
                    models.Q(models.Q(("withdrawal_reason", ""), _negated=True), ("withdrawn_at__isnull", False)),
                    _connector="OR",
                ),
                name="a_withdrawn_version_says_why_and_since_when",
            )], 
                "ordering": ["toolkit__name", "-major", "-minor", "-patch"],
            },
        ),
        migrations.CreateModel(
            name="Tool",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("position", models.PositiveIntegerField(default=0)),
                ("name", models.CharField(max_length=62)),
                ("title", models.CharField(blank=True, default="", max_length=200)),
                ("description", models.TextField(blank=True, default="")),
                (
                    "risk",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "Low"), (2, "Medium"), (3, "High"), (4, "Critical")], default=1
                    ),
                ),
                (
                    "idempotency",
                    models.CharField(
                        choices=[
                            ("read", "Read"),
                            ("idempotent", "Idempotent"),
                            ("keyed", "Keyed"),
                            ("non_idempotent", "Non Idempotent"),
                        ],
                        default="non_idempotent",
                        max_length=16,
                    ),
                ),
                ("input_schema", registry.models.exactjson.ExactJSONField(default=registry.models.tool.no_parameters)),
                ("output_schema", registry.models.exactjson.ExactJSONField(blank=True, default=dict, null=True)),
                ("non_inferrable", registry.models.exactjson.ExactJSONField(blank=True, default=list)),
                ("annotations", registry.models.exactjson.ExactJSONField(blank=True, default=dict)),
                ("requirements", registry.models.exactjson.ExactJSONField(blank=True, default=dict)),
                ("runtime", registry.models.exactjson.ExactJSONField(default=dict)),
                ("auth", registry.models.exactjson.ExactJSONField(blank=True, default=dict)),
                ("digest", models.CharField(blank=True, default="", max_length=71)),
                ("capabilities", models.ManyToManyField(blank=True, related_name="tools", to="registry.capability")),
                (
                    "version",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="tools", to="registry.toolkitversion"
                    ),
                ),
            ],
            options={"constraints": [models.UniqueConstraint(
                models.F("version"),
                django.db.models.functions.text.Lower("name"),
                name="tool_names_of_a_version_differ_by_more_than_case",
                violation_error_message="This version has a tool of this name (case does not count).",
            ), models.CheckConstraint(
                condition=models.Q(("name__regex", "\\A[A-Za-z][A-Za-z0-9_]*\\Z")),
                name="tool_name_is_ascii_letters_digits_underscores",
                violation_error_message="A name starts with a letter; ASCII letters, digits and underscores follow.",
            ), models.CheckConstraint(
                condition=models.Q(("risk__in", [1, 2, 3, 4])), name="tool_risk_is_on_the_scale"
            )], 
                "ordering": ["version", "position", "name"],
            },
        ),
        triggers.install(*freezing.TRIGGERS),
        revision.create_table(),
        revision.watch("registry_toolkit"),
        revision.watch("registry_toolkitversion"),
        revision.watch("registry_tool"),
        revision.watch("registry_tool_capabilities"),
        revision.watch("guardian_userobjectpermission"),
        revision.watch("guardian_groupobjectpermission"),
        revision.watch("auth_user", ["is_active", "is_superuser"]),
        revision.watch("auth_user_groups"),
        revision.watch("auth_group_permissions"),
        revision.watch("auth_user_user_permissions"),
    ]
