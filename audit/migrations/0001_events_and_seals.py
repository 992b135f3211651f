from django.db import migrations, models

from audit.triggers import append_only


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Seal",
            fields=[
                ("n", models.BigIntegerField(primary_key=True, serialize=False)),
                ("first_id", models.BigIntegerField()),
                ("last_id", models.BigIntegerField()),
                ("count", models.PositiveIntegerField()),
                ("gaps", models.TextField()),
                ("merkle_root", models.BinaryField(max_length=32)),
                ("prev_seal_hash", models.BinaryField(max_length=32)),
                ("sealed_at", models.DateTimeField()),
                ("signature", models.BinaryField(max_length=64)),
                ("key_id", models.CharField(max_length=16)),
            ],
            options={"ordering": ["-n"], "base_manager_name": "objects"},
        ),
        migrations.CreateModel(
            name="Event",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("subject_kind", models.CharField(max_length=40)),
                ("subject_id", models.CharField(max_length=255)),
                ("seq", models.PositiveIntegerField()),
                ("event", models.CharField(max_length=100)),
                ("actor", models.CharField(max_length=255)),
                ("at", models.DateTimeField()),
                ("outcome", models.CharField(max_length=40)),
                ("detail", models.TextField()),
                ("trace_id", models.CharField(blank=True, max_length=64)),
                ("prev_hash", models.BinaryField(max_length=32)),
                ("hash", models.BinaryField(max_length=32)),
                ("key_id", models.CharField(max_length=16)),
            ],
            options={
                "ordering": ["-id"],
                "base_manager_name": "objects",
                "indexes": [
                    models.Index(fields=["event", "id"], name="event_by_name"),
                    models.Index(fields=["actor", "id"], name="event_by_actor"),
                    models.Index(fields=["trace_id"], name="event_by_trace"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("subject_kind", "subject_id", "seq"), name="event_seq_is_used_once_per_subject"
                    )
                ],
            },
        ),
        append_only("audit_event", ("id",), ("subject_kind", "subject_id", "seq")),
        append_only("audit_seal", ("n",)),
    ]
