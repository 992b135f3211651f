"""A toolkit for ringing doorbells."""

from typing import Annotated

from placet import RetryableToolError, ToolContext, Toolkit, tool

toolkit = Toolkit("Doorbell", "0.1.0")

DOORBELLS = ("doorbell42", "doorbell84")


@tool(title="Ring a doorbell", risk="low", capabilities=["external.side_effect"], idempotency="idempotent")
def ring(doorbell_id: Annotated[str, "The ID of the doorbell to ring."], context: ToolContext) -> None:
    """Rings a doorbell."""
    if doorbell_id not in DOORBELLS:
        raise RetryableToolError(
            "Doorbell ID not found",
            developer_message=f"The doorbell with ID '{doorbell_id}' does not exist.",
            additional_prompt_content=f"ids: {','.join(DOORBELLS)}",
            retry_after_ms=500,
        )
    context.log.info("%s rings", doorbell_id)
