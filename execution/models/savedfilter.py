"""SavedFilter: a question that one person asks again and again, under a name of their own."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Lower, Now


class SavedFilter(models.Model):
    """What stood in the search box, and whether calls or events were searched."""

    class Place(models.TextChoices):
        CALLS = "calls", "Calls"
        EVENTS = "events", "Events"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    place = models.CharField(max_length=6, choices=Place.choices)
    name = models.CharField(max_length=60)
    query = models.CharField(max_length=500)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(
                "owner", "place", Lower("name"), name="filter_names_of_a_person_differ_by_more_than_case"
            ),
        ]

    def __str__(self) -> str:
        return self.name
