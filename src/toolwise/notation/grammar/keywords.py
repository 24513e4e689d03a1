"""The words of JSON Schema by what masks make of them. A word that is in no list here is an annotation."""

from __future__ import annotations

import re
from typing import Any

Schema = dict[str, Any]
COPIED = frozenset(
    {"type", "const", "enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength"}
    | {"maxLength", "pattern", "minItems", "maxItems", "required", "minProperties", "maxProperties"}
)
UNMASKED = frozenset(
    {"not", "if", "contains", "minContains", "maxContains", "dependentRequired", "dependentSchemas", "dependencies"}
    | {"propertyNames", "unevaluatedProperties", "unevaluatedItems"}
)
IN_PLACE = ("allOf", "anyOf", "oneOf", "$ref")
#: Formats that the engine writes; of the others of the standard, the loss is recorded.
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"})
OTHER_FORMATS = frozenset(
    {"idn-email", "idn-hostname", "uri-reference", "iri", "iri-reference", "uri-template", "json-pointer"}
    | {"relative-json-pointer", "regex"}
)
#: In these, nothing that stands beside a `$ref` counts.
REF_ALONE = re.compile(r"https?://json-schema\.org/draft-0[67]/schema#?")
OBJECT_WORDS = frozenset({"properties", "required", "additionalProperties", "patternProperties"})
DIGITS = 10**18 - 1
ANY = "any"
THIS = {"$ref": f"#/$defs/{ANY}"}
KINDS: Schema = {
    "anyOf": [
        {"type": ["string", "boolean", "null"]},
        {"type": "number", "minimum": -DIGITS, "maximum": DIGITS},
        {"type": "array", "items": THIS},
        {"type": "object", "additionalProperties": THIS},
    ]
}
#: Any JSON, its numbers within bounds.
ANYTHING: Schema = {**THIS, "$defs": {ANY: KINDS}}
LOWER, UPPER = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
#: What is left out first where the engine refuses a place.
DROP_ORDER = (
    *("pattern", "format", "multipleOf", "minProperties", "maxProperties", "patternProperties", "minLength"),
    *("maxLength", "minItems", "maxItems", "allOf", "anyOf", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "prefixItems", "items", "required", "additionalProperties", "properties", "enum", "const"),
)
