"""An agent with its key and JWT secret, shown once."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from policy import agents


class Command(BaseCommand):
    help = "Create an agent; its key and JWT secret are shown once and kept nowhere in clear."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--call", metavar="TOOLKIT", nargs="+", action="extend", default=[])
        parser.add_argument("--call-all", action="store_true", help="may call every toolkit, also later ones")
        parser.add_argument("--serve", metavar="TOOLKIT", nargs="+", action="extend", default=[])
        parser.add_argument("--owner", metavar="USER", help="the person who answers for the agent")
        parser.add_argument("--json", action="store_true", help="print {name, key, jwt_secret}")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            made = agents.create(
                options["name"],
                actor="shell",
                owner=options["owner"],
                call=options["call"],
                serve=options["serve"],
                call_all=options["call_all"],
            )
        except agents.AgentError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"name": made.agent.name, "key": made.key, "jwt_secret": made.jwt_secret}))
            return
        self.stdout.write(f"agent       {made.agent.name}")
        self.stdout.write(f"key         {made.key}")
        self.stdout.write(f"jwt secret  {made.jwt_secret}")
        self.stdout.write("They are not shown again.")
