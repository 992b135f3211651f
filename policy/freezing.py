"""What the database itself keeps true about rules, votes and approvals, whoever writes."""

from registry.triggers import Refusal, Trigger, differs

_NOT_A_DRAFT = "(SELECT state FROM policy_revision WHERE number = {row}.revision_id {{lock}}) <> 'draft'"
_RULES_STAY = "The rules of an activated revision never change; make a new draft instead."
_BOUND = (
    "id",
    "call",
    "call_id",
    "door",
    "agent_id",
    "tool_id",
    "tool_ref",
    "risk",
    "user_id",
    "arguments_digest",
    "digest",
    "revision",
    "rule",
    "reason",
    "approvers",
    "quorum",
    "run_within",
    "created_at",
    "decide_by",
)
_LIVE = "('pending', 'approved')"
_MOVES = (
    "NEW.state = OLD.state"
    " OR (OLD.state = 'pending' AND NEW.state IN ('approved', 'denied', 'expired', 'withdrawn'))"
    " OR (OLD.state = 'approved' AND NEW.state IN ('consumed', 'lapsed', 'revoked', 'withdrawn', 'pending'))"
)

REVISIONS_STAY: tuple[Trigger, ...] = (
    Refusal(
        name="a_policy_revision_starts_as_a_draft",
        table="policy_revision",
        event="INSERT",
        when="NEW.state <> 'draft'",
        message="A policy revision starts as a draft.",
    ),
    Refusal(
        name="an_activated_policy_revision_stays_as_it_is",
        table="policy_revision",
        event="UPDATE",
        when=f"OLD.state <> 'draft' AND ({differs('number', 'digest', 'note', 'based_on')} OR NEW.state = 'draft')",
        message="An activated policy revision never changes; make a new draft instead.",
    ),
    Refusal(
        name="an_activated_policy_revision_is_never_deleted",
        table="policy_revision",
        event="DELETE",
        when="OLD.state <> 'draft'",
        message="An activated policy revision is kept for ever.",
    ),
    *[
        Refusal(
            name=f"rules_of_an_activated_revision_refuse_{event.lower()}",
            table="policy_rule",
            event=event,
            when=_NOT_A_DRAFT.format(row="OLD" if event == "DELETE" else "NEW"),
            message=_RULES_STAY,
        )
        for event in ("INSERT", "UPDATE", "DELETE")
    ],
    Refusal(
        name="a_rule_of_an_activated_revision_does_not_move_out",
        table="policy_rule",
        event="UPDATE",
        when=_NOT_A_DRAFT.format(row="OLD"),
        message=_RULES_STAY,
    ),
)

VOTES_STAY: tuple[Trigger, ...] = (
    Refusal(
        name="a_vote_never_changes",
        table="policy_vote",
        event="UPDATE",
        when=f"OLD.voided_at IS NOT NULL OR {differs('id', 'approval_id', 'person_id', 'answer', 'reason', 'at')}",
        message="A vote never changes.",
    ),
    Refusal(
        name="a_vote_is_never_deleted", table="policy_vote", event="DELETE", when="1 = 1", message="A vote is kept."
    ),
)

APPROVALS_STAY: tuple[Trigger, ...] = (
    Refusal(
        name="what_an_approval_is_bound_to_never_changes",
        table="policy_approval",
        event="UPDATE",
        when=differs(*_BOUND),
        message="What an approval is bound to never changes.",
    ),
    Refusal(
        name="an_approval_that_ended_never_changes",
        table="policy_approval",
        event="UPDATE",
        when=f"OLD.state NOT IN {_LIVE}",
        message="An approval that ended never changes.",
    ),
    Refusal(
        name="an_approval_moves_only_as_it_may",
        table="policy_approval",
        event="UPDATE",
        when=f"NOT ({_MOVES})",
        message="An approval does not move that way.",
    ),
    Refusal(
        name="an_approval_is_never_deleted",
        table="policy_approval",
        event="DELETE",
        when="1 = 1",
        message="An approval is kept for ever.",
    ),
)
