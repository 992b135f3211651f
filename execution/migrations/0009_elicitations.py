import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('execution', '0008_mcp_sessions'),
        ('policy', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Elicitation',
            fields=[
                ('call', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='execution.call')),
                ('turn', models.PositiveIntegerField(default=0)),
                ('action', models.CharField(blank=True, choices=[('accept', 'Opened'), ('decline', 'Declined'), ('cancel', 'Dismissed')], default='', max_length=7)),
                ('fingerprint', models.CharField(blank=True, default='', max_length=64)),
                ('session', models.CharField(blank=True, default='', max_length=64)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('told_at', models.DateTimeField(null=True)),
                ('announced_at', models.DateTimeField(null=True)),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='policy.agent')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('told_at', None)), fields=['agent', 'fingerprint'], name='links_not_yet_followed'), models.Index(condition=models.Q(('announced_at', None)), fields=['session'], name='questions_of_a_session')],
            },
        ),
    ]
