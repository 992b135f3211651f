import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("execution", "0007_secrets_in_force"),
        ("policy", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="McpSession",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("key", models.CharField(max_length=64, unique=True)),
                ("version", models.CharField(max_length=10)),
                ("capabilities", models.JSONField(default=dict)),
                ("client", models.CharField(blank=True, default="", max_length=200)),
                ("log_level", models.CharField(default="info", max_length=9)),
                ("opened_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("seen_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "agent",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="policy.agent",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(fields=["agent", "seen_at"], name="mcp_sessions_of_an_agent"),
                    models.Index(fields=["seen_at"], name="mcp_sessions_by_last_use"),
                ],
            },
        ),
    ]
