"""The shelf: which tools a person sees, each once, in answer to which question."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Case, F, IntegerField, Q, QuerySet, Value, When, Window
from django.db.models.functions import Lower, RowNumber
from django.http import QueryDict
from django.urls import reverse
from guardian.models import GroupObjectPermission, UserObjectPermission

from execution.portal.toolwords import RUNTIMES
from registry import access, search
from registry.models import Tool, Toolkit
from registry.risk import RiskLevel

LAYOUTS = {"cards": 24, "list": 50}  # to how many are on one page
MAX_TEXT = 200
# Which of several versions stands for the tool: the newest that callers get, else what they may still see of it.
PREFERENCE = ("published", "deprecated", "draft", "withdrawn")
_RANK = Case(
    *(When(version__state=state, then=Value(place)) for place, state in enumerate(PREFERENCE)),
    output_field=IntegerField(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What was asked for; what nobody could ask for is left out."""

    text: str = ""
    capability: str = ""
    risk: str = ""
    runtime: str = ""
    owner: str = ""
    state: str = ""
    layout: str = "cards"

    @classmethod
    def read(cls, asked: QueryDict) -> "Question":
        told = {name: asked.get(name, "").replace("\0", "")[:MAX_TEXT].strip() for name in cls.__slots__}
        told["text"] = asked.get("q", "").replace("\0", " ")[:MAX_TEXT].strip()
        known = {"risk": [each.word for each in RiskLevel], "runtime": RUNTIMES, "state": PREFERENCE}
        for name, values in known.items():
            if told[name] not in values:
                told[name] = ""
        if told["layout"] not in LAYOUTS:
            told["layout"] = "cards"
        return cls(**told)

    @property
    def is_narrow(self) -> bool:
        return any((self.text, self.capability, self.risk, self.runtime, self.owner, self.state))

    def address(self, **changes: str | int) -> str:
        """Where this question is answered, with some of it changed; what is empty is left out."""
        named = {name: getattr(self, name) for name in self.__slots__ if name != "text"}
        named = {"q": self.text} | named | {name: str(value) for name, value in changes.items()}
        told = {name: value for name, value in named.items() if value and (name, value) != ("layout", "cards")}
        return f"{reverse('portal-catalogue')}{f'?{urlencode(told)}' if told else ''}"


def tools(user: User, question: Question) -> QuerySet[Tool]:
    """One row for each tool, in the version that stands for it; only of toolkits that this person may see."""
    seen = access.visible_tools(user)
    if question.state:
        seen = seen.filter(version__state=question.state)
    found: QuerySet[Tool] = Tool.objects.filter(pk__in=standing_for(seen).values("pk"))
    if question.risk:
        found = found.filter(risk=RiskLevel.from_word(question.risk))
    if question.capability:
        found = found.filter(capabilities__name=question.capability)
    if question.runtime:
        found = search.of_runtime(found, question.runtime)
    if question.owner:
        found = found.filter(version__toolkit__in=_published_by(question.owner))
    found = search.matching(found, question.text)
    return found.order_by(Lower("version__toolkit__name"), Lower("name"))


def standing_for(seen: QuerySet[Tool]) -> QuerySet[Tool]:
    """Of all versions of a tool the preferred one."""
    newest = [F("version__major").desc(), F("version__minor").desc(), F("version__patch").desc()]
    place = Window(
        RowNumber(),
        partition_by=[F("version__toolkit"), Lower("name")],
        order_by=[_RANK, *newest],
    )
    return seen.order_by().annotate(place=place).filter(place=1)


def page_of(tool: Tool) -> str:
    """The address of a tool's page, whichever version is shown there first."""
    return reverse("portal-tool", args=[tool.version.toolkit.name, tool.name])


def pages_for(user: User, tools: Iterable[Tool]) -> dict[int, str]:
    """The address of each tool's page, by the tool's key, for those that this person may open."""
    named = list(tools)
    seen = set(access.visible_tools(user).filter(pk__in=[tool.pk for tool in named]).values_list("pk", flat=True))
    return {tool.pk: page_of(tool) for tool in named if tool.pk in seen}


def _published_by(name: str) -> QuerySet[Toolkit]:
    """The toolkits that this person owns or was given to publish, by name or through a group."""
    on_toolkits = {"permission__content_type__app_label": "registry", "permission__codename": "publish_toolkit"}
    given = {
        int(key)
        for rows in (
            UserObjectPermission.objects.filter(user__username=name, **on_toolkits),
            GroupObjectPermission.objects.filter(group__user__username=name, **on_toolkits),
        )
        for key in rows.values_list("object_pk", flat=True)
    }
    return Toolkit.objects.filter(Q(owner__username=name) | Q(pk__in=given)).order_by()
