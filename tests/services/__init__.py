"""Real servers for tests and measurements, from wheels, on loopback, gone when their user is gone."""

from tests.services.postgres import postgres
from tests.services.redis import redis

__all__ = ["postgres", "redis"]
