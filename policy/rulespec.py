"""RuleSpec: one rule of a policy, checked and frozen: for whom, on what, when, with which effect."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from policy.decision import Ask, Effect, Limits
from policy.models.agent import AGENT_NAME
from policy.rulesentence import sentence
from registry import durations
from registry.fields import Fields, ManifestError
from registry.models.capability import CAPABILITY_PATTERN
from registry.risk import RiskLevel

MAX_NAME = 120
MAX_GROUP = 150
MAX_WHEN = 4_000
MAX_QUORUM = 20
MAX_WITHIN = 30 * 86_400  # seconds
MAX_LIMIT = 1_000_000_000
# What decides when no rule does; a rule of that name would read like it.
RESERVED = ("permission", "default", "error")

_FIELDS = ("name", "tools", "agents", "groups", "capabilities", "riskAtLeast", "when", "effect", "ask", "limits")
_LIMITS = {"perMinute": "per_minute", "perDay": "per_day", "atOnce": "at_once"}
_NAME = r"[A-Za-z][A-Za-z0-9_]{0,63}"
_VERSION = r"(0|[1-9][0-9]{0,8})"
_TOOLS = re.compile(rf"\*|{_NAME}\.(\*|{_NAME}(@{_VERSION}\.{_VERSION}\.{_VERSION})?)")
_CAPABILITY = re.compile(CAPABILITY_PATTERN)


class RuleError(ManifestError):
    """A rule that cannot be taken: where, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSpec:
    """Empty lists mean anyone and anything; a rule that asks always says whom."""

    name: str
    agents: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    risk_at_least: RiskLevel | None = None
    when: str = ""
    effect: Effect
    ask: Ask | None = None
    limits: Limits | None = None

    @property
    def sentence(self) -> str:
        """The rule in plain English, for people."""
        return sentence(self)

    def as_json(self) -> dict[str, Any]:
        """The rule as a policy file spells it; what is empty is left out."""
        told: dict[str, Any] = {"name": self.name}
        for name in ("tools", "agents", "groups", "capabilities"):
            if value := getattr(self, name):
                told[name] = list(value)
        if self.risk_at_least is not None:
            told["riskAtLeast"] = self.risk_at_least.word
        if self.when:
            told["when"] = self.when
        told["effect"] = self.effect.value
        if self.ask is not None:
            told["ask"] = _ask_as_json(self.ask)
        if self.limits is not None:
            given = self.limits.as_json()
            told["limits"] = {name: given[key] for name, key in _LIMITS.items() if given[key] is not None}
        return told


def read_rule(data: Any, path: str = "") -> RuleSpec:
    """The rule of a document; a RuleError says where it is not one."""
    try:
        return _rule(Fields(data, path, _FIELDS))
    except RuleError:
        raise
    except ManifestError as error:
        raise RuleError(error.path, error.reason) from None


def _rule(fields: Fields) -> RuleSpec:
    effect = Effect(fields.choice("effect", ("allow", "deny", "ask")))
    return RuleSpec(
        name=_name(fields),
        agents=_texts(fields, "agents", "is not the name of an agent", AGENT_NAME.fullmatch),
        groups=_texts(fields, "groups", f"is longer than {MAX_GROUP} characters", lambda name: len(name) <= MAX_GROUP),
        tools=_tools(fields),
        capabilities=_texts(fields, "capabilities", "is not a capability such as data.read", _CAPABILITY.match),
        risk_at_least=_risk(fields),
        when=_when(fields),
        effect=effect,
        ask=_ask(fields, effect),
        limits=_limits(fields, effect),
    )


def _name(fields: Fields) -> str:
    name = fields.text("name", most=MAX_NAME)
    if name != name.strip() or not name.isprintable():
        raise RuleError(fields.at("name"), "must be one line without spaces around it")
    if name.lower() in RESERVED:
        raise RuleError(fields.at("name"), f"must not be one of {', '.join(RESERVED)}, which decide without a rule")
    return name


def _texts(fields: Fields, name: str, reason: str, is_right: Callable[[str], object]) -> tuple[str, ...]:
    found = fields.texts(name)
    for index, text in enumerate(found):
        if not is_right(text):
            raise RuleError(f"{fields.at(name)}[{index}]", reason)
    return tuple(found)


def _tools(fields: Fields) -> tuple[str, ...]:
    reason = "is not a pattern such as Toolkit.Tool, Toolkit.Tool@1.2.0, Toolkit.* or *"
    found = _texts(fields, "tools", reason, _TOOLS.fullmatch)
    if len({pattern.lower() for pattern in found}) != len(found):
        raise RuleError(fields.at("tools"), "names the same thing twice")
    return found


def _risk(fields: Fields) -> RiskLevel | None:
    if not fields.has("riskAtLeast"):
        return None
    return RiskLevel.from_word(fields.choice("riskAtLeast", [level.word for level in RiskLevel]))


def _when(fields: Fields) -> str:
    if not fields.has("when"):
        return ""
    if fields.raw("when") in (True, False):
        raise RuleError(fields.at("when"), "must be a text; a rule without a condition leaves it out")
    return fields.text("when", most=MAX_WHEN).strip()


def _ask(fields: Fields, effect: Effect) -> Ask | None:
    if effect is not Effect.ASK:
        if fields.has("ask"):
            raise RuleError(fields.at("ask"), "goes with the effect ask only")
        return None
    inner = Fields(fields.raw("ask", {}), fields.at("ask"), ("approvers", "quorum", "decideWithin", "runWithin"))
    usual = Ask()
    return Ask(
        approvers=inner.text("approvers", "", most=MAX_GROUP),
        quorum=inner.whole("quorum", usual.quorum, least=1, most=MAX_QUORUM),
        decide_within=_within(inner, "decideWithin", usual.decide_within),
        run_within=_within(inner, "runWithin", usual.run_within),
    )


def _within(fields: Fields, name: str, usual: int) -> int:
    if not fields.has(name):
        return usual
    try:
        seconds = durations.seconds(fields.text(name))
    except ValueError as error:
        raise RuleError(fields.at(name), str(error)) from None
    if seconds != int(seconds) or not 1 <= seconds <= MAX_WITHIN:
        raise RuleError(fields.at(name), f"must be whole seconds, from 1s to {MAX_WITHIN // 3600}h")
    return int(seconds)


def _limits(fields: Fields, effect: Effect) -> Limits | None:
    if not fields.has("limits"):
        return None
    if effect is Effect.DENY:
        raise RuleError(fields.at("limits"), "does not go with the effect deny")
    inner = Fields(fields.raw("limits"), fields.at("limits"), tuple(_LIMITS))
    given = {key: inner.whole(name, None, least=1, most=MAX_LIMIT) for name, key in _LIMITS.items() if inner.has(name)}
    if not given:
        raise RuleError(fields.at("limits"), f"must hold at least one of {', '.join(_LIMITS)}")
    return Limits(**given)


def _ask_as_json(ask: Ask) -> dict[str, Any]:
    told: dict[str, Any] = {"approvers": ask.approvers} if ask.approvers else {}
    return told | {
        "quorum": ask.quorum,
        "decideWithin": durations.short(ask.decide_within),
        "runWithin": durations.short(ask.run_within),
    }
