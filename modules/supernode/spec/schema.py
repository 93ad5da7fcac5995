"""The JSON schema of environment.yml, for editors."""

from __future__ import annotations

import json

from supernode.spec.environment import Environment


def schema_text() -> str:
    """Return the text of inventories/environment.schema.json."""
    from supernode.families import families

    schema = Environment.model_json_schema(by_alias=True)
    schema["title"] = "environment.yml"
    # Loaded for this alone, so the document's own model does not have them.
    topologies = [family.Parameters.model_json_schema() for family in families().values()]
    schema["$defs"]["ScaleUp"]["properties"]["topology"] = {"oneOf": topologies}
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
