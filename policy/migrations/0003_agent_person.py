import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

_COLUMN = 'ALTER TABLE "policy_agent" ADD COLUMN "person_id" integer NULL REFERENCES "auth_user" ("id")'


class Migration(migrations.Migration):
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL), ("policy", "0002_rules_and_approvals")]

    operations = [
        # In place, on both databases: where Django rebuilds a SQLite table to add a column, its triggers are lost.
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f"{_COLUMN} DEFERRABLE INITIALLY DEFERRED",
                    'ALTER TABLE "policy_agent" DROP COLUMN "person_id"',
                ),
                migrations.RunSQL(
                    'CREATE UNIQUE INDEX "a_person_has_one_agent_of_their_own" ON "policy_agent" ("person_id")',
                    'DROP INDEX "a_person_has_one_agent_of_their_own"',
                ),
            ],
            state_operations=[
                migrations.AddField(
                    model_name="agent",
                    name="person",
                    field=models.OneToOneField(
                        blank=True,
                        editable=False,
                        help_text="The person who tries tools at the portal through this agent; it has no keys.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="own_agent",
                        to=settings.AUTH_USER_MODEL,
                    ),
                )
            ],
        ),
    ]
