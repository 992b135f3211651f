from django.db import migrations

from registry import revision


class Migration(migrations.Migration):
    """Rules name groups, so a group's new name is a new revision."""

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("registry", "0001_initial"),
        ("policy", "0003_replay_lease"),
    ]

    operations = [revision.watch("auth_group", ["name"])]
