"""ExactJSONField: a JSON value kept as the text it was written as."""

import json
from typing import Any

from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper


class ExactJSONField(models.JSONField):
    """JSON whose key order and numbers survive the database; jsonb would sort the one and rewrite the other."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "text"

    def get_db_prep_value(self, value: Any, connection: BaseDatabaseWrapper, prepared: bool = False) -> Any:
        if value is None or hasattr(value, "as_sql"):
            return value
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    def get_db_prep_save(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        return self.get_db_prep_value(value, connection)

    def from_db_value(self, value: Any, expression: Any, connection: BaseDatabaseWrapper) -> Any:
        return None if value is None else json.loads(value)
