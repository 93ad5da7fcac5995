"""The JSON schema of environment.yml, for editors."""

from __future__ import annotations

import json

from supernode.spec.environment import Environment


def schema_text() -> str:
    """Return the text of inventories/environment.schema.json."""
    schema = Environment.model_json_schema(by_alias=True)
    schema["title"] = "environment.yml"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
