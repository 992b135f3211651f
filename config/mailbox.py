"""The mailbox: kombu's broker made of a folder, for one machine; whoever looks into it finds whole messages only."""

import contextlib
import logging
import os
import time
import uuid
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.transport import filesystem
from kombu.utils.json import dumps

logger = logging.getLogger(__name__)


class Channel(filesystem.Channel):
    """A message appears under its name when it is complete; a folder that was removed is made again."""

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:  # type: ignore[override]
        content: str = dumps(message)  # type: ignore[no-untyped-call]
        folder = Path(self.data_folder_out)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{time.monotonic_ns() // 1_000_000}_{uuid.uuid4()}.{queue}.msg"
        unfinished = folder / f".{name}"
        unfinished.write_text(content)
        os.rename(unfinished, folder / name)

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """The oldest message; one that nobody can read is dropped, for the database knows what it was about."""
        try:
            return super()._get(queue)  # type: ignore[no-untyped-call]
        except FileNotFoundError:
            Path(self.data_folder_in).mkdir(parents=True, exist_ok=True)
        except ValueError:
            logger.warning("a message that is not JSON was dropped")
        raise Empty

    def _size(self, queue: str) -> int:
        with contextlib.suppress(FileNotFoundError):
            return int(super()._size(queue))  # type: ignore[no-untyped-call]
        return 0

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        self.control_folder.mkdir(parents=True, exist_ok=True)
        super()._queue_bind(exchange, routing_key, pattern, queue)  # type: ignore[no-untyped-call]


class Transport(filesystem.Transport):
    """What the settings call filesystem://."""

    Channel = Channel
