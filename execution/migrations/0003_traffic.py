from django.db import migrations, models

TABLE = "execution_attempt"
# Columns are added in place, on both databases: where Django rebuilds a SQLite table to do so, its triggers are lost.
COLUMNS = {
    "sent": 'bigint DEFAULT 0 NOT NULL CHECK ("sent" >= 0)',
    "received": 'bigint DEFAULT 0 NOT NULL CHECK ("received" >= 0)',
    "upstream_status": "varchar(40) DEFAULT '' NOT NULL",
}


class Migration(migrations.Migration):
    dependencies = [("execution", "0002_approvals_and_grants")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f'ALTER TABLE "{TABLE}" ADD COLUMN "{name}" {kind}',
                    f'ALTER TABLE "{TABLE}" DROP COLUMN "{name}"',
                )
                for name, kind in COLUMNS.items()
            ],
            state_operations=[
                migrations.AddField("attempt", "sent", models.PositiveBigIntegerField(default=0, db_default=0)),
                migrations.AddField("attempt", "received", models.PositiveBigIntegerField(default=0, db_default=0)),
                migrations.AddField(
                    "attempt",
                    "upstream_status",
                    models.CharField(max_length=40, default="", db_default="", blank=True),
                ),
            ],
        ),
    ]
