import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

import execution.models.session


class Migration(migrations.Migration):

    dependencies = [
        ('execution', '0009_elicitations'),
        ('policy', '0001_initial'),
        ('registry', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Session',
            fields=[
                ('id', models.CharField(default=execution.models.session.new_key, editable=False, max_length=40, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('seen_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to='policy.agent')),
                ('toolkits', models.ManyToManyField(related_name='+', to='registry.toolkit')),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [
                    models.Index(fields=['agent', '-created_at'], name='sessions_of_an_agent'),
                    models.Index(fields=['seen_at'], name='sessions_by_last_sign'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Pull',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('fence', models.PositiveIntegerField()),
                ('claimed_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('deadline', models.DateTimeField()),
                ('is_offered_again', models.BooleanField(default=False)),
                ('refused', models.PositiveIntegerField(default=0)),
                ('agent', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='policy.agent')),
                ('call', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='pulls', to='execution.call')),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pulls', to='execution.session')),
                ('toolkit', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='registry.toolkit')),
            ],
            options={
                'ordering': ['-id'],
                'indexes': [models.Index(fields=['claimed_at'], name='pulls_by_age')],
                'constraints': [models.UniqueConstraint(fields=('call', 'fence'), name='one_pull_per_call_and_fence')],
            },
        ),
    ]
