"""Files of evidence as answers to a browser or a program."""

import tempfile
from typing import IO
from uuid import UUID

from django.http import FileResponse

from execution import packs
from execution.evidence import write_pack
from execution.models import Pack
from execution.scope import Scope
from execution.viewer import Viewer

MEDIA = {"zip": "application/zip", "jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}


def download(pack: Pack) -> FileResponse | None:
    """The file of a finished pack; None if it is gone, or no longer theirs who asked for it."""
    file = packs.opened(pack)
    return None if file is None else _answer(file, pack.filename, MEDIA[pack.form])


def of_call(id: UUID, viewer: Viewer) -> FileResponse:
    """The pack of one call, made while the client waits; the caller has seen that the call is visible."""
    # The answer closes it, and with that it is gone.
    file = tempfile.TemporaryFile(dir=packs.folder(), prefix="call-", suffix=".part")  # noqa: SIM115
    try:
        write_pack(file, Scope(call=id), viewer)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return _answer(file, f"placet-evidence-call-{id}.zip", MEDIA["zip"])


def _answer(file: IO[bytes], name: str, media_type: str) -> FileResponse:
    answer = FileResponse(file, as_attachment=True, filename=name, content_type=media_type)
    answer["Cache-Control"] = "no-store"
    answer["X-Content-Type-Options"] = "nosniff"
    return answer
