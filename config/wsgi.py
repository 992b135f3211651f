"""The web's entry point."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

application = get_wsgi_application()

from execution import watchman  # noqa: E402  (only once Django is set up)

watchman.start()
