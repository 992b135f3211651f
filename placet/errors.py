"""How a tool says that it failed, and how a toolkit is told that it cannot be used."""


class ToolError(Exception):
    """A failure the tool foresaw: `message` is for the caller, `developer_message` for whoever looks into it."""

    def __init__(
        self,
        message: str,
        *,
        developer_message: str = "",
        can_retry: bool = False,
        additional_prompt_content: str = "",
        retry_after_ms: int | None = None,
    ) -> None:
        for name, text in (
            ("message", message),
            ("developer_message", developer_message),
            ("additional_prompt_content", additional_prompt_content),
        ):
            if not isinstance(text, str):
                raise TypeError(f"{name} must be a text, not {type(text).__name__}")
        if retry_after_ms is not None and (type(retry_after_ms) is not int or not 0 <= retry_after_ms <= 2**31 - 1):
            raise ValueError("retry_after_ms must be a whole number of milliseconds from 0 to 2147483647")
        super().__init__(message)
        self.message = message
        self.developer_message = developer_message
        self.can_retry = bool(can_retry)
        self.additional_prompt_content = additional_prompt_content
        self.retry_after_ms = retry_after_ms


class RetryableToolError(ToolError):
    """A failure that another attempt may cure, perhaps with other arguments."""

    def __init__(
        self,
        message: str,
        *,
        developer_message: str = "",
        additional_prompt_content: str = "",
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(
            message,
            developer_message=developer_message,
            can_retry=True,
            additional_prompt_content=additional_prompt_content,
            retry_after_ms=retry_after_ms,
        )


class FatalToolError(ToolError):
    """A failure that no other attempt will cure."""

    def __init__(self, message: str, *, developer_message: str = "", additional_prompt_content: str = "") -> None:
        super().__init__(
            message, developer_message=developer_message, additional_prompt_content=additional_prompt_content
        )


class InvalidInputError(ToolError):
    """The arguments fit the schema and still make no sense; `developer_message` should name the parameter."""


class ToolkitError(Exception):
    """A toolkit's code cannot become a toolkit version; the text names the place and the reason."""
