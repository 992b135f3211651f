from django.db import migrations

import registry.models.exactjson


class Migration(migrations.Migration):
    dependencies = [("registry", "0001_initial")]

    operations = [
        # In place, on both databases: where Django rebuilds a SQLite table to add a column, its triggers are lost.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    'ALTER TABLE "registry_tool" ADD COLUMN "icons" text NULL',
                    'ALTER TABLE "registry_tool" DROP COLUMN "icons"',
                )
            ],
            state_operations=[
                migrations.AddField("tool", "icons", registry.models.exactjson.ExactJSONField(blank=True, null=True))
            ],
        ),
    ]
