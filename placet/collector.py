"""python -m placet.collector --folder PATH: loads a folder's tools and prints their manifest as one JSON object."""

import ast
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from placet import child, schema
from placet.answers import BadResult, to_json
from placet.errors import ToolkitError
from placet.tool import ToolDefinition, definition_of, place
from placet.toolkit import Toolkit


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of the tools in a folder, which must already be on the import path."""
    modules = {name: _load(folder, path, name) for path, name in _sources(folder)}
    toolkit, home = _toolkit(folder, modules)
    tools = [_tool(definition, name) for name, module in modules.items() for definition in _definitions(module)]
    if not tools:
        raise ToolkitError(f"{folder.name}: no function is marked with @tool")
    seen: dict[str, str] = {}
    for tool in tools:
        entrypoint = tool["runtime"]["entrypoint"]
        other = seen.setdefault(tool["name"].lower(), entrypoint)
        if other != entrypoint:
            raise ToolkitError(f"{entrypoint} and {other} are both called {tool['name']}")
    description = (home.__doc__ or "").strip() if toolkit.description is None else toolkit.description
    return {
        "apiVersion": "placet.dev/v1",
        "kind": "Toolkit",
        "metadata": {
            "name": toolkit.name,
            "version": toolkit.version,
            "title": toolkit.title,
            "description": description,
        },
        "spec": {"tools": sorted(tools, key=lambda tool: tool["name"])},
    }


def _sources(folder: Path) -> Iterator[tuple[Path, str]]:
    """The modules that speak of placet; others are left alone, they may be scripts or tests."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        parents = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts))]
        if not all(part.isidentifier() for part in parts) or not all((p / "__init__.py").is_file() for p in parents):
            continue
        if _imports_placet(path, folder):
            yield path, ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _imports_placet(path: Path, folder: Path) -> bool:
    name = path.relative_to(folder)
    try:
        tree = ast.parse(path.read_bytes(), filename=str(name))
    except SyntaxError as error:
        raise ToolkitError(f"{name}:{error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise ToolkitError(f"{name}: {error}") from None
    for node in ast.walk(tree):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        if any(name.split(".")[0] == "placet" for name in names):
            return True
    return False


def _load(folder: Path, path: Path, name: str) -> ModuleType:
    told = path.relative_to(folder)
    try:
        module = importlib.import_module(name)
    except ToolkitError as error:
        place_known = str(error).startswith(f"{path.name}:")
        raise ToolkitError(str(error) if place_known else f"{told}{_line(error, path)}: {error}") from error
    except (Exception, SystemExit) as error:
        raise ToolkitError(f"{told}{_line(error, path)}: {type(error).__name__}: {error}") from error
    if not getattr(module, "__file__", None) or Path(str(module.__file__)).resolve() != path.resolve():
        raise ToolkitError(f"{told}: the name {name} is taken by another module of Python; rename the file")
    return module


def _line(error: BaseException, path: Path) -> str:
    trace, line = error.__traceback__, ""
    while trace:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line


def _toolkit(folder: Path, modules: dict[str, ModuleType]) -> tuple[Toolkit, ModuleType]:
    found: dict[int, tuple[Toolkit, str]] = {}
    for name, module in modules.items():
        for value in vars(module).values():
            if isinstance(value, Toolkit):
                found.setdefault(id(value), (value, name))
    if not found:
        raise ToolkitError(f'{folder.name}: no module says toolkit = Toolkit(name="...", version="...")')
    if len(found) > 1:
        places = " and ".join(f"{toolkit!r} in {name}" for toolkit, name in found.values())
        raise ToolkitError(f"{folder.name}: a folder holds one toolkit, but there are {places}")
    toolkit, name = next(iter(found.values()))
    return toolkit, modules[name]


def _definitions(module: ModuleType) -> Iterator[ToolDefinition]:
    for name, value in vars(module).items():
        definition = definition_of(value)
        if definition is None or definition.function.__module__ != module.__name__:
            continue  # What was imported from another module is collected there.
        if vars(module).get(definition.function.__name__) is not definition.function:
            raise ToolkitError(f"{place(definition.function)}: @tool must be the outermost mark of a module's function")
        if name == definition.function.__name__:  # and not a second name for the same function
            yield definition


def _tool(definition: ToolDefinition, module: str) -> dict[str, Any]:
    function = definition.function
    try:
        return _described(definition, f"{module}:{function.__name__}")
    except (ToolkitError, BadResult) as error:
        raise ToolkitError(f"{place(function)}: {error}") from error


def _described(definition: ToolDefinition, entrypoint: str) -> dict[str, Any]:
    takes = schema.input_schema(definition.function)
    for name in definition.non_inferrable:
        if name not in takes["properties"]:
            raise ToolkitError(f"non_inferrable names {name!r}, which is no parameter")
    has_output, gives = schema.output_schema(definition.function)
    tool: dict[str, Any] = {
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "risk": definition.risk,
        "capabilities": list(definition.capabilities),
        "idempotency": definition.idempotency,
        "input": takes,
        "output": gives,
        "nonInferrable": list(definition.non_inferrable),
        "annotations": definition.annotations,
        "requirements": definition.requirements,
        "runtime": {
            "type": "python",
            "entrypoint": entrypoint,
            "dispatch": definition.dispatch,
            "timeout": definition.timeout,
            "retry": definition.retry,
        },
    }
    if not has_output:
        del tool["output"]
    if definition.icons:
        tool["icons"] = definition.icons
    checked: dict[str, Any] = to_json(tool)
    return checked


def main(arguments: list[str]) -> int:
    """Prints {"manifest": …} or {"error": …}, whatever the toolkit's code prints meanwhile."""
    folder = Path(arguments[arguments.index("--folder") + 1])
    answer = _quietly(lambda: _told(folder))
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))
    sys.stdout.flush()
    return 0


def _told(folder: Path) -> dict[str, Any]:
    child.settle(str(folder))
    try:
        return {"manifest": manifest_of(folder)}
    except ToolkitError as error:
        return {"error": str(error)}


def _quietly(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Runs with standard output turned to standard error, for the answer must stand alone."""
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        return work()
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # A thread the toolkit started must not keep us.
