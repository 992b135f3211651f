"""Standing: what one person has to do with, in a handful of queries; sidebar and home show that and nothing else."""

from collections import defaultdict
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest
from guardian.models import GroupObjectPermission, UserObjectPermission

from policy import readers
from policy.models import Agent
from registry.actors import is_person
from registry.models import Toolkit


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A person's permissions on toolkits, what they own, and the permissions that count everywhere."""

    user: User
    held: dict[str, frozenset[int]]  # a verb to the toolkits that it was given on
    owned: frozenset[int]  # toolkits
    owns_agents: bool

    @classmethod
    def of(cls, user: User) -> "Standing":
        held: defaultdict[str, set[int]] = defaultdict(set)
        on_toolkits = {"content_type__app_label": "registry", "content_type__model": "toolkit"}
        mine = UserObjectPermission.objects.filter(user=user, **on_toolkits)
        ours = GroupObjectPermission.objects.filter(group__user=user, **on_toolkits)
        for codename, key in mine.values_list("permission__codename", "object_pk").union(
            ours.values_list("permission__codename", "object_pk")
        ):
            held[codename.removesuffix("_toolkit")].add(int(key))
        return cls(
            user=user,
            held={verb: frozenset(keys) for verb, keys in held.items()},
            owned=frozenset(Toolkit.objects.filter(owner=user).values_list("pk", flat=True)),
            owns_agents=Agent.objects.filter(owner=user).exists(),
        )

    def has(self, *permissions: str) -> bool:
        """One of the permissions that count everywhere."""
        return any(map(self.user.has_perm, permissions))

    def may(self, *verbs: str) -> bool:
        """One of these on some toolkit."""
        return self.user.is_superuser or any(self.held.get(verb) for verb in verbs)

    @property
    def sees_every_call(self) -> bool:
        return self.has("execution.view_call")

    @property
    def decides(self) -> bool:
        """Whether calls may wait for this person's answer."""
        return self.may("approve")

    @property
    def publishes(self) -> bool:
        return self.may("publish") or bool(self.owned)

    @property
    def sees_toolkits(self) -> bool:
        verbs = ("view", "call", "audit", "publish", "review")
        has_one = self.has("registry.view_toolkit", "registry.call_toolkit", "registry.audit_toolkit")
        return has_one or self.may(*verbs) or bool(self.owned) or self.has("registry.add_toolkit")

    @property
    def sees_calls(self) -> bool:
        """Whether the list of calls can hold anything for this person."""
        is_wide = self.sees_every_call or self.has("registry.audit_toolkit", "registry.approve_toolkit")
        return is_wide or self.owns_agents or self.may("audit", "approve") or self.has("policy.break_glass")

    @property
    def sees_events(self) -> bool:
        return self.has("audit.view_event") or self.sees_calls

    @property
    def sees_totals(self) -> bool:
        """Whether there are calls whose numbers concern this person: all, or those of toolkits and agents of theirs."""
        return self.sees_every_call or self.owns_agents or bool(self.counted)

    @property
    def counted(self) -> frozenset[int]:
        """Toolkits whose calls this person sees the numbers of: they answer for them, or read their evidence."""
        return self.owned | self.held.get("publish", frozenset()) | self.held.get("audit", frozenset())

    @property
    def totals(self) -> Q:
        """The calls, or totals of calls, that count for this person."""
        if self.sees_every_call:
            return Q()
        return Q(agent__owner=self.user) | Q(tool__version__toolkit__in=self.counted)

    def reads_permissions_of(self, toolkit: int) -> bool:
        """Whether they are told who may do what with it."""
        return self.user.is_superuser or toolkit in self.counted

    def gives_calls_of(self, toolkit: int) -> bool:
        """Whether they give and take what agents live on: as its owner, or as one who publishes it."""
        return self.user.is_superuser or toolkit in self.owned | self.held.get("publish", frozenset())

    @property
    def may_ask_why(self) -> bool:
        """Whether some question why an agent may call a tool, or not, is answered to this person."""
        return self.owns_agents or self.has("policy.change_agent") or readers.may_replay(self.user) or self.may("audit")

    def reads_calls_of(self, toolkit: int) -> bool:
        """Whether the list shows every call of this toolkit, and a number may lead there."""
        everywhere = self.sees_every_call or self.has("registry.audit_toolkit")
        return everywhere or toolkit in self.held.get("audit", frozenset())

    @property
    def reads_what_is_counted(self) -> bool:
        return all(map(self.reads_calls_of, self.counted))


def standing(request: HttpRequest) -> Standing | None:
    """The viewer's, looked up once in a request; None for whoever is no person with a login."""
    found: Standing | None = getattr(request, "_standing", None)
    if found is None and isinstance(request.user, User) and is_person(request.user):
        found = Standing.of(request.user)
        request._standing = found  # type: ignore[attr-defined]
    return found
