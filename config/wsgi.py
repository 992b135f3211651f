"""The web's entry point."""

import os
from typing import Any

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

pages = get_wsgi_application()

from config.doorway import Doorway  # noqa: E402  (only once Django is set up)
from execution import hooks, stopping, telemetry, watchman  # noqa: E402

doors = Doorway()


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """The doors for programs, the pages for people."""
    return (doors if environ["PATH_INFO"] in doors else pages)(environ, start_response)


telemetry.load()
hooks.load()
watchman.start()
stopping.watch()
