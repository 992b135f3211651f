"""Threads: the same work several times at once, each with a database connection of its own."""

import threading
from collections.abc import Callable

from django.db import connection


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Run the same work in several threads with connections of their own, and pass on the first failure."""
    failures: list[BaseException] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        try:
            start.wait(10)
            work(number)
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if failures:
        raise failures[0]
