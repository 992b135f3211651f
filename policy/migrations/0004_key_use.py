import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("policy", "0003_agent_person")]

    operations = [
        migrations.CreateModel(
            name="KeyUse",
            fields=[
                (
                    "credential",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="use",
                        serialize=False,
                        to="policy.credential",
                        to_field="prefix",
                    ),
                ),
                ("used_at", models.DateTimeField()),
            ],
        ),
    ]
