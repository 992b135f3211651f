"""A query that no view can read is refused in the form of the door, and is no bug of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.test import Client

from tests.protocols.specification import must_be
from tests.protocols.wire import get

if TYPE_CHECKING:
    from policy.agents import NewAgent

pytestmark = pytest.mark.django_db

MANY = "/tools?" + "&".join(f"p{number}=1" for number in range(1_001))


@pytest.mark.parametrize("is_known", [True, False])
def test_more_parameters_than_are_read_are_refused_by_the_door(client: Client, robot: NewAgent, is_known: bool) -> None:
    response = get(client, MANY, robot if is_known else None)

    assert response.status_code == (400 if is_known else 401)
    must_be("ServerErrorResponse", response.json())


def test_they_are_refused_in_the_older_profile_too(client: Client, robot: NewAgent) -> None:
    body = get(client, MANY, robot, Accept_Profile="otc").json()

    assert body["success"] is False
