"""FlatName: who holds the name Toolkit_Tool."""

from django.db import models

from registry.models.toolkit import Toolkit

MAX_FLAT_NAME = 64


class FlatName(models.Model):
    """A name without dots, in lower case, and the one toolkit that may use it.

    A_B.C and A.B_C would both be A_B_C. The database claims the name when a tool is written and refuses the second
    toolkit; a toolkit that no longer has such a tool loses it to the next one that asks.
    """

    name = models.CharField(max_length=MAX_FLAT_NAME, primary_key=True)
    toolkit = models.ForeignKey(Toolkit, on_delete=models.CASCADE, related_name="flat_names")

    def __str__(self) -> str:
        return self.name
