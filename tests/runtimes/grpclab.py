"""The toolkit Lab for the grpc runtime: the same five tools behind a real gRPC server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.test import override_settings

from tests.runtimes.sandboxlabs import tool, toolkit
from tests.runtimes.weblabs import FAILURE, NAMES
from tests.services.grpcserver import Act, dies, echoes, grpcserver, hangs, says

ACTS: dict[str, Act] = {
    "Lab_Echo": echoes(lambda asked: {"status": "ok", "output": {"result": asked["input"]["value"]}}),
    "Lab_Fail": says({"status": "error", "error": FAILURE}),
    "Lab_Hang": hangs,
    "Lab_Die": dies,
    "Lab_Flood": says({"status": "ok", "output": {"result": "x" * 100_000}}),
}


@contextmanager
def grpc(folder: Path) -> Iterator[None]:
    async def act(server: Any, stream: Any, asked: Any) -> None:
        await ACTS[asked["tool"]["name"]](server, stream, asked)

    with grpcserver(act) as server, override_settings(PLACET_EGRESS_ALLOW=["127.0.0.0/8"]):
        toolkit(folder, *(tool(name, type="grpc", endpoint=server.url) for name in NAMES))
        yield
