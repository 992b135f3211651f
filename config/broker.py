"""The embedded broker: messages are files in a folder, and each appears and disappears whole.

kombu's own transport lets a reader find a message that is still being written, and then the worker dies of it. Here a
message is written beside and renamed into place, and taken by renaming it away: one reader wins, none sees half of it.
"""

import logging
import os
import time
from collections import deque
from json import dumps, loads
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu.transport import filesystem

LISTEN = 0.1  # seconds after which a worker that hears nothing looks up, for it may have been told to go

logger = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """Puts and takes messages; what cannot be read is dropped, because the database knows every call anyway."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._listed: deque[str] = deque()  # the names found last time: a long queue is not listed for each message

    def _put(self, queue: str, payload: Any, **_: Any) -> None:
        folder = self.data_folder_out
        os.makedirs(folder, mode=0o700, exist_ok=True)
        name = f"{time.monotonic_ns():020d}-{uuid4().hex}.{queue}.msg"
        draft = os.path.join(folder, f".{name}")
        with open(draft, "w") as file:
            file.write(dumps(payload))
        os.rename(draft, os.path.join(folder, name))

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        folder = self.data_folder_in
        while True:
            name = self._next_name(folder, f".{queue}.msg")
            taken = os.path.join(folder, f".taken-{name}")
            try:
                os.rename(os.path.join(folder, name), taken)
            except FileNotFoundError:  # another worker was faster
                continue
            with open(taken) as file:
                content = file.read()
            os.unlink(taken)
            try:
                return loads(content)
            except ValueError:
                logger.warning("dropped a message that cannot be read: %s", name)

    def _next_name(self, folder: str, ending: str) -> str:
        if not self._listed:
            try:
                names = os.listdir(folder)
            except FileNotFoundError:
                raise Empty from None
            self._listed.extend(sorted(name for name in names if name[0] != "." and name.endswith(ending)))
        if not self._listed:
            raise Empty
        return self._listed.popleft()


class Transport(filesystem.Transport):
    """For `CELERY_BROKER_TRANSPORT`; the options are those of kombu's filesystem transport."""

    Channel = Channel

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        super().drain_events(connection, timeout if timeout is None else min(timeout, LISTEN))
