from django.db import migrations, models
from django.db.models import Q

_NAME = "a_sunset_belongs_to_a_deprecation"


class Migration(migrations.Migration):
    dependencies = [("registry", "0002_tool_icons")]

    operations = [
        # In place, on both databases: where Django rebuilds a SQLite table to add a column, its triggers are lost.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    'ALTER TABLE "registry_toolkitversion" ADD COLUMN "sunset_on" date NULL'
                    f' CONSTRAINT "{_NAME}" CHECK ("sunset_on" IS NULL OR "deprecated_at" IS NOT NULL)',
                    'ALTER TABLE "registry_toolkitversion" DROP COLUMN "sunset_on"',
                )
            ],
            state_operations=[
                migrations.AddField("toolkitversion", "sunset_on", models.DateField(blank=True, null=True)),
                migrations.AddConstraint(
                    "toolkitversion",
                    models.CheckConstraint(
                        name=_NAME, condition=Q(sunset_on__isnull=True) | Q(deprecated_at__isnull=False)
                    ),
                ),
            ],
        ),
    ]
