"""The specification's own schemas, as tests ask them."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator

HERE = Path(__file__).parent


@cache
def validator(name: str) -> Draft202012Validator:
    schemas = json.loads((HERE / "oxp-1.0.strict.schemas.json").read_text())
    return Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schemas["$defs"]})


def must_be(name: str, body: Any) -> None:
    """Fails with the specification's complaint unless the body is what the schema of that name demands."""
    complaints = [
        f"/{'/'.join(map(str, error.instance_path))}: {error.message}" for error in validator(name).iter_errors(body)
    ]
    assert not complaints, f"not a {name}: {complaints} in {body}"
