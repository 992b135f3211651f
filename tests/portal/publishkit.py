"""A publisher's desk: who sits there, the manifests they paste, and what must not change while they only look."""

from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit.models import Event
from registry import yamlwriting
from registry.models import Capability, Tool, Toolkit, ToolkitVersion
from tests.factories.registry import manifest

NEW = "/publish/new/"


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text(*args: Any, **fields: Any) -> str:
    """A manifest as somebody pastes it."""
    return yamlwriting.write(manifest(*args, **fields))


def read(answer: Any, status: int = 200) -> str:
    told: str = answer.content.decode()
    assert answer.status_code == status, told
    return told


def everything() -> list[Any]:
    """What the registry and the trail hold; looking at it twice shows whether something was written."""
    versions = ToolkitVersion.objects.order_by("pk").values_list("pk", "state", "digest", "review_requested_at")
    models = (Toolkit, Tool, Capability, Event)
    return [*versions, *(model._default_manager.count() for model in models)]


def queries(client: Client, address: str, **given: Any) -> list[str]:
    """The statements behind one page."""
    with CaptureQueriesContext(connection) as asked:
        answer = client.post(address, given) if given else client.get(address)
    assert answer.status_code == 200, answer.content.decode()
    return [each["sql"] for each in asked.captured_queries]
