"""Imports point one way: config -> execution -> policy -> registry -> audit; placet stands alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORDER = ["config", "execution", "policy", "registry", "audit"]
MAY_IMPORT = {app: set(ORDER[place:]) | {"placet"} for place, app in enumerate(ORDER)} | {"placet": {"placet"}}
# Inside execution: doors lead to the pipeline, the pipeline to the hands; nothing leads back.
INSIDE = [
    ("execution/runtimes", ("execution.pipeline", "execution.protocols", "execution.calls", "execution.dispatch")),
    ("execution/pipeline", ("execution.protocols", "execution.api")),
    ("execution/calls.py", ("execution.pipeline", "execution.protocols", "execution.dispatch", "execution.tasks")),
]


def sources(folder: str) -> list[Path]:
    return [path for path in sorted((ROOT / folder).rglob("*.py")) if "migrations" not in path.parts]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module or ""


@pytest.mark.parametrize("app", MAY_IMPORT)
def test_imports_point_one_way(app: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(app)
        for name in imports(path)
        if name.split(".")[0] in MAY_IMPORT and name.split(".")[0] not in MAY_IMPORT[app]
    ]
    assert wrong == []


@pytest.mark.parametrize(("place", "forbidden"), INSIDE)
def test_steps_never_lead_back(place: str, forbidden: tuple[str, ...]) -> None:
    paths = [ROOT / place] if place.endswith(".py") else sources(place)
    wrong = [f"{path.name} imports {name}" for path in paths for name in imports(path) if name.startswith(forbidden)]
    assert wrong == []


def test_the_authors_package_needs_no_django() -> None:
    third_party = {"django", "rest_framework", "celery", "orjson", "yaml"}
    used = {name.split(".")[0] for path in sources("placet") for name in imports(path)}
    assert used & third_party == set()


def test_no_file_is_too_long_to_read() -> None:
    folders = [*MAY_IMPORT, "tests", "bench", "examples"]
    long = {
        str(path.relative_to(ROOT)): lines
        for folder in folders
        for path in sources(folder)
        if (lines := len(path.read_text().splitlines())) > 400
    }
    assert long == {}


def test_every_failure_has_a_row_of_its_own() -> None:
    from execution.errors import ErrorCode, Failure

    wires = [code.wire for code in ErrorCode]
    assert len(wires) == len(set(wires))
    for code in ErrorCode:
        told = Failure(code=code, message="x", details={"a": 1}, retry_after_ms=5)
        assert Failure.from_json(told.as_json()) == told
        assert 200 <= code.http < 600


def test_only_the_guard_opens_connections_to_the_outside() -> None:
    """Mail alone has a way of its own: to the one server that the operator names."""
    clients = {"urllib.request", "http.client", "requests", "httpx", "aiohttp", "urllib3", "grpclib.client", "smtplib"}
    openers = {"create_connection", "open_connection", "connect_ex", "getaddrinfo", "gethostbyname"}
    wrong = []
    for path in [path for app in ORDER[1:] for path in sources(app)]:
        name = str(path.relative_to(ROOT))
        called = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        used = (set(imports(path)) & clients) | (called & openers)
        if used and not name.startswith("execution/egress/") and (name, used) != ("policy/delivery.py", {"smtplib"}):
            wrong.append((name, used))
    assert wrong == []
