from django.db import migrations


class Migration(migrations.Migration):
    """Joins what was built side by side."""

    dependencies = [
        ('execution', '0007_mcp_sessions'),
        ('execution', '0008_elicitations'),
        ('execution', '0009_sessions'),
    ]

    operations = []
