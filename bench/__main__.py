"""`make bench`: the product on both stacks beside a bare view; the rows of every answer are counted afterwards."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench import evidence, processes, report
from bench.client import Load, drive
from bench.figures import Evidence, Figures, Stack, Used
from bench.judging import FEW, MANY, Judging
from bench.pages import PageTime
from bench.servers import CannotMeasure, Home, Server, bare, product
from bench.targets import targets
from config.reaper import Reaper
from tests.services import postgres, redis

CALLS, TOOLS = 100_000, 1_000  # the long past
# With these PostgreSQL waits for the disk at each commit, and the disk of the machine is what is measured.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to measure."""

    rounds: int
    seconds: float
    warm_up: float
    concurrencies: tuple[int, ...]
    has_past: bool


QUICK = Plan(rounds=2, seconds=0.8, warm_up=0.3, concurrencies=(1, 16), has_past=False)
FULL = Plan(rounds=15, seconds=0.3, warm_up=0.1, concurrencies=(1, 16, 64), has_past=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute: fewer rounds, no long past")
    parser.add_argument("--only", choices=("embedded", "company"), help="one stack only")
    parser.add_argument("--durable", action="store_true", help="PostgreSQL waits for the disk at each commit")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else FULL
    reaper = Reaper()
    try:
        with tempfile.TemporaryDirectory(prefix="placet-bench-") as folder:
            reaper.folder(Path(folder))
            stacks = [
                measure(name, about, homes, plan, Path(folder), reaper)
                for name, about, homes in _stacks(Path(folder), plan, arguments)
            ]
            decisions = _judging(Home.make(Path(folder), "judging"))
    except CannotMeasure as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        reaper.close()
    judged = list(targets(stacks, decisions))
    report.show(stacks, judged)
    report.write(stacks, decisions, judged)
    missed = [target for target in judged if not target.is_met]
    print(f"\n{len(judged) - len(missed)} of {len(judged)} targets met; everything in {report.LATEST}")
    return 1 if missed else 0


def _stacks(folder: Path, plan: Plan, arguments: argparse.Namespace) -> Iterator[tuple[str, str, dict[str, Home]]]:
    """Each way to run, with a home for each variant; its services live until the next is asked for."""
    variants = ("fresh", "full") if plan.has_past else ("fresh",)
    if arguments.only != "company":
        yield "embedded", "SQLite and the filesystem broker", {each: Home.make(folder, each) for each in variants}
    if arguments.only != "embedded":
        settings = DURABLE if arguments.durable else {}
        with postgres(**settings) as database, redis() as broker:
            homes = {}
            for number, variant in enumerate(variants):
                own = _database(database, f"bench_{variant}")
                queue = broker.rpartition("/")[0] + f"/{number}"
                homes[variant] = Home.make(folder, variant, DATABASE_URL=own, CELERY_BROKER_URL=queue)
            yield "company", f"PostgreSQL 18 ({'waits' if settings else 'does not wait'} for the disk) and Redis", homes


def _database(url: str, name: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return url.rpartition("/")[0] + f"/{name}"


def measure(name: str, about: str, homes: dict[str, Home], plan: Plan, folder: Path, reaper: Reaper) -> Stack:
    """One way to run: inline, then queued, each variant beside the bare view."""
    stack = Stack(name, about)
    answers, before = dict.fromkeys(homes, 0), {}
    for variant, home in homes.items():
        home.prepare()
        if variant == "full":
            _say(f"{name}: recording {CALLS:,} calls and {TOOLS:,} tools ...")
            home.run("-m", "bench.history", str(CALLS), str(TOOLS))
            _say(f"{name}: timing the portal's pages ...")
            stack.pages = [PageTime(**each) for each in json.loads(home.run("-m", "bench.pages"))]
        before[variant] = json.loads(home.run("-m", "bench.evidence"))
    for mode in ("inline", "queued"):
        with ExitStack() as running:
            beside = running.enter_context(bare(folder, reaper))
            ours = {
                variant: running.enter_context(product(home, reaper, is_inline=mode == "inline"))
                for variant, home in homes.items()
            }
            for variant, server in ours.items():
                answers[variant] += _prime(server)
            for concurrency in plan.concurrencies:
                _say(f"{name}: {mode}, {concurrency} at a time ...")
                loads = _interleaved({**ours, "bare": beside}, concurrency, plan)
                for variant in ours:
                    stack.figures.append(Figures.over(mode, variant, loads[variant], loads["bare"]))
                    answers[variant] += sum(load.answered for load in loads[variant])
            stack.memory += [_used(mode, variant, server) for variant, server in ours.items()]
    for variant, home in homes.items():
        _say(f"{name}: verifying {answers[variant]:,} calls ...")
        stack.evidence.append(_evidence(variant, home, answers[variant], before[variant]))
    return stack


def _prime(server: Server) -> int:
    """Let every process load what it needs before anything is measured; the answers count as evidence all the same."""
    return drive(server.port, server.questions, concurrency=16, seconds=2.0).answered


def _interleaved(servers: dict[str, Server], concurrency: int, plan: Plan) -> dict[str, list[Load]]:
    """Round after round, each server in turn: what disturbs the machine disturbs them all."""
    loads: dict[str, list[Load]] = {name: [] for name in servers}
    for _ in range(plan.rounds):
        for name, server in servers.items():
            load = drive(
                server.port, server.questions, concurrency=concurrency, seconds=plan.seconds, warm_up=plan.warm_up
            )
            if not load.calls:
                raise CannotMeasure(f"{name} answered nothing: {load.first_error}")
            loads[name].append(load)
    return loads


def _used(mode: str, variant: str, server: Server) -> Used:
    below = {processes.named(pid): pid for pid in processes.children(server.pid)}
    web = next(pid for name, pid in below.items() if "granian" in name)
    worker = next(pid for name, pid in below.items() if "celery" in name)
    return Used(
        mode=mode,
        variant=variant,
        web=processes.memory(processes.tree(web)),
        worker=processes.memory(processes.tree(worker)),
    )


def _evidence(variant: str, home: Home, answers: int, before: dict[str, int]) -> Evidence:
    found: dict[str, int] = json.loads(home.run("-m", "bench.evidence"))
    problem = evidence.problem(found, answers, before)
    try:
        home.run("manage.py", "verify_audit")
    except CannotMeasure as error:
        problem = f"{problem} {error}".strip()
    return Evidence(variant=variant, answers=answers, is_whole=not problem, problem=problem)


def _judging(home: Home) -> Judging:
    _say(f"judging by {FEW} rules and by {MANY:,} ...")
    home.prepare()
    return Judging(**json.loads(home.run("-m", "bench.judging")))


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
