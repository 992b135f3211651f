"""The logins of people are evidence too."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from audit.models import Event

pytestmark = pytest.mark.django_db


def test_coming_in_and_leaving_are_events_of_the_person() -> None:
    User.objects.create_user("ada", password="a password of some length")
    client = Client()
    assert client.login(username="ada", password="a password of some length")
    client.logout()
    told = Event.objects.filter(subject_kind="user", subject_id="ada").order_by("seq")
    assert list(told.values_list("event", "actor")) == [
        ("user.logged_in", "user:ada"),
        ("user.logged_out", "user:ada"),
    ]


def test_a_wrong_password_is_nobody() -> None:
    User.objects.create_user("ada", password="a password of some length")
    assert not Client().login(username="ada", password="wrong")
    assert not Event.objects.filter(subject_kind="user").exists()
