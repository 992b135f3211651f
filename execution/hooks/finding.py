"""A dotted path to the hook it names: a callable, or a module with one called `observe`."""

import importlib
import importlib.util
import time
from collections.abc import Callable
from logging import getLogger
from types import ModuleType
from typing import Any, cast

from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from execution.hooks.events import Event

logger = getLogger(__name__)

SLOW_IMPORT = 1.0  # seconds, of which every process of ours pays each
Hook = Callable[[Event], object]


def find(path: str) -> Hook:
    """The hook, or ImproperlyConfigured with what is wrong with the path."""
    began = time.perf_counter()
    hook = _named(path)
    if not callable(hook):
        raise ImproperlyConfigured(f"PLACET_HOOKS names {path}, which is neither callable nor a module with `observe`")
    took = time.perf_counter() - began
    if took > SLOW_IMPORT:
        logger.warning("the hook %s took %.1f s to import, in every process of Placet", path, took)
    return cast(Hook, hook)


def _named(path: str) -> Any:
    try:
        named = importlib.import_module(path) if _is_module(path) else import_string(path)
        return getattr(named, "observe", None) if isinstance(named, ModuleType) else named
    except (Exception, SystemExit) as error:  # whatever the operator's own code does when it is imported
        why = f"it exits with {error}" if isinstance(error, SystemExit) else error
        raise ImproperlyConfigured(f"PLACET_HOOKS names {path}, which cannot be imported: {why}") from error


def _is_module(path: str) -> bool:
    try:
        return importlib.util.find_spec(path) is not None
    except ModuleNotFoundError:  # what stands before the last dot is no package
        return False
