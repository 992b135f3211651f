"""The web's entry point."""

import os
from multiprocessing.util import Finalize
from typing import Any

from django.conf import settings
from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.local")

pages = get_wsgi_application()

from audit import warm  # noqa: E402  (only once Django is set up)
from config.doorway import Doorway  # noqa: E402
from execution import hooks, stopping, telemetry, watchman  # noqa: E402
from execution.protocols.bodies import Readers  # noqa: E402
from execution.runtimes import hosts  # noqa: E402

doors = Doorway()
threads = settings.PLACET_WEB_THREADS
# A door knows its caller before it reads, a page does not: strangers must not take the programs' seats.
at_doors, at_pages = (Readers(in_all=threads // 4, each=threads // 8) for _ in range(2))


def application(environ: dict[str, Any], start_response: Any) -> Any:
    """The doors for programs, the pages for people."""
    is_door = environ["PATH_INFO"] in doors
    (at_doors if is_door else at_pages).guard(environ)
    return (doors if is_door else pages)(environ, start_response)


warm.want()
telemetry.load()
hooks.load()
watchman.start()
stopping.watch()
# The server's processes end as those of multiprocessing do, without what is registered with atexit.
Finalize(None, telemetry.flush, exitpriority=2)
Finalize(None, hosts.end_all, exitpriority=1)
