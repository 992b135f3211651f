"""What must hold of PLACET_HOOKS before Placet serves anyone."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from execution.hooks.finding import find


@register(Tags.security)
def every_hook_can_be_called(**_: Any) -> list[CheckMessage]:
    wrong: list[CheckMessage] = []
    for path in settings.PLACET_HOOKS:
        try:
            find(path)
        except ImproperlyConfigured as error:
            hint = "Name callables by dotted paths, comma separated: execution.hooks.logging,my_company.watch.calls"
            wrong.append(Error(f"{error}.", hint=hint, id="execution.E001"))
    return wrong
