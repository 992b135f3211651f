"""KeyUse: when a key last opened a door, to a few minutes."""

from django.db import models

from policy.models.credential import Credential


class KeyUse(models.Model):
    """Beside the key and not in it: to write a key is news for every cache, and that it was used is not."""

    credential = models.OneToOneField(
        Credential, to_field="prefix", primary_key=True, on_delete=models.CASCADE, related_name="use"
    )
    used_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.credential_id}… at {self.used_at:%Y-%m-%d %H:%M}"
