"""The worker's entry point: queues and timetable."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

app = Celery("placet")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["execution"])
app.conf.beat_schedule = {
    "sweep": {"task": "execution.sweep", "schedule": 5.0, "options": {"expires": 5.0}},
    "seal": {"task": "execution.seal", "schedule": 5.0, "options": {"expires": 5.0}},
}


@setup_logging.connect
def _use_our_logging(**_: Any) -> None:
    """Celery would install its own handlers; Django's settings already say how we log."""
    from logging.config import dictConfig

    from django.conf import settings

    dictConfig(settings.LOGGING)
