"""RiskLevel: an ordered scale from LOW to CRITICAL."""

from django.db import models


class RiskLevel(models.IntegerChoices):
    """How much harm one wrong call can do; comparable, so that rules can say "at least"."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3
    CRITICAL = 4

    @property
    def word(self) -> str:
        """The level as manifests and answers spell it."""
        return self.name.lower()

    @property
    def needs_review(self) -> bool:
        """A second person looks at such a tool before it is published."""
        return self >= RiskLevel.HIGH

    @classmethod
    def from_word(cls, word: str) -> "RiskLevel":
        """The level of a word such as "high"; ValueError for any other."""
        for level in cls:
            if level.word == word:
                return level
        raise ValueError(f"{word!r} is not one of low, medium, high, critical")
