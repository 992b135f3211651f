"""Who may read policy, write it, and try it on other people's agents; always people, never a service credential."""

from typing import Any

from audit.access import sees_everything
from registry.actors import is_person
from registry.models import Toolkit


def may_read(user: Any) -> bool:
    """See every revision, its rules and its shadow's differences."""
    return _is_someone(user) and (user.has_perm("policy.view_revision") or user.has_perm("policy.edit_policy"))


def may_write(user: Any) -> bool:
    """Draft, activate, roll back, and let a revision be judged as a shadow."""
    return _is_someone(user) and user.has_perm("policy.edit_policy")


def may_replay(user: Any) -> bool:
    """Judge everyone's recorded calls anew: for those who write policy, and for auditors of everything."""
    return may_write(user) or (_is_someone(user) and sees_everything(user))


def may_examine(user: Any, toolkit: Toolkit | None = None) -> bool:
    """Ask what would be decided about any agent: also who audits the toolkit in question."""
    if may_replay(user):
        return True
    return toolkit is not None and _is_someone(user) and user.has_perm("registry.audit_toolkit", toolkit)


def _is_someone(user: Any) -> bool:
    return bool(user is not None and user.is_authenticated and user.is_active and is_person(user))
