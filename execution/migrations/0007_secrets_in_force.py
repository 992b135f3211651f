"""A change of the secrets in force is a new revision, so that no process masks by those of yesterday."""

from django.db import migrations

from registry import revision


class Migration(migrations.Migration):
    dependencies = [("execution", "0006_breakers")]

    operations = [
        revision.watch("execution_secret", ["name", "source", "path"]),
        revision.watch("execution_secretversion", ["discarded_at"]),
    ]
