"""Schemas of every kind by lot, and texts that a matcher lets a lot draw."""

import random

_NAMES = ("a", "b", "c", "é d")
_STRINGS = (
    *({}, {"minLength": 2, "maxLength": 4}, {"pattern": "^a+b?$"}, {"pattern": "(?=x)y"}, {"format": "date"}),
    *({"format": "iri"}, {"format": "zz"}, {"pattern": r"\d{2}"}, {"pattern": "^(a+)+$"}, {"pattern": r"\bfoo\b"}),
    *({"pattern": "^a$", "minLength": 3}, {"pattern": r"^[^\s]+$"}, {"pattern": "a|b"}, {"pattern": r"\p{L}"}),
)
_NUMBERS = (
    *({}, {"minimum": -3}, {"maximum": 7.5}, {"exclusiveMinimum": 0}, {"multipleOf": 3}, {"multipleOf": 0.01}),
    *({"minimum": 2, "maximum": 2}, {"minimum": 1.5, "multipleOf": 0.5}, {"minimum": 1, "exclusiveMaximum": 2}),
)
_ARRAYS = (
    *({}, {"uniqueItems": True}, {"minItems": 1, "maxItems": 2}, {"contains": {"const": 1}}),
    {"prefixItems": [{"const": "p"}]},
)
_OBJECTS = (
    *({}, {}, {}, {"minProperties": 1}, {"maxProperties": 1}, {"propertyNames": {"pattern": "^a"}}),
    *({"dependentRequired": {"a": ["b"]}}, {"patternProperties": {"^x": {"type": "integer"}}}),
    *({"not": {"required": ["a"]}}, {"if": {"required": ["a"]}, "then": {"required": ["b"]}}),
    *({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"unevaluatedProperties": False}),
    {"allOf": [{"properties": {"z": {"type": "integer"}}, "required": ["z"]}]},
)
_VALUES = (1, 1.5, "x", 'y"z', None, True, {"k": 1}, [1, 2], "é")
_BESIDE = ({}, {"description": "d"}, {"minLength": 1}, {"minProperties": 1})


def random_schema(lot: random.Random):
    defs = {f"D{i}": _schema(lot, 1) for i in range(3)}
    return {"type": "object", "properties": {"r": _schema(lot, 0)}, "required": ["r"], "$defs": defs}


def _schema(lot: random.Random, depth: int):
    inner = lambda: _schema(lot, depth + 1)  # noqa: E731
    kinds = ["string", "number", "enum", "const", "types", "any", "ref"]
    if depth < 3:
        kinds += ["array", "object", "object", "anyOf", "oneOf", "oneOf", "allOf"]
    match lot.choice(kinds):
        case "string":
            return {"type": "string", **lot.choice(_STRINGS)}
        case "number":
            return {"type": lot.choice(["integer", "number"]), **lot.choice(_NUMBERS)}
        case "enum":
            return {"enum": lot.sample(_VALUES, lot.randint(1, 4))}
        case "const":
            return {"const": lot.choice(_VALUES)}
        case "types":
            return {"type": lot.choice([["string", "null"], ["integer", "string"], "boolean", "null"])}
        case "any":
            return {}
        case "ref":
            return {"$ref": f"#/$defs/D{lot.randint(0, 2)}", **lot.choice(_BESIDE)}
        case "array":
            return {"type": "array", **lot.choice(_ARRAYS), **({"items": inner()} if lot.random() < 0.8 else {})}
        case "object":
            names = lot.sample(_NAMES, lot.randint(0, 4))
            made = {"type": "object", "properties": {name: inner() for name in names}, **lot.choice(_OBJECTS)}
            if lot.random() < 0.6:
                made["required"] = lot.sample(names, lot.randint(0, len(names)))
            if lot.random() < 0.3:
                made["additionalProperties"] = lot.choice([False, True, {"type": "integer"}, inner()])
            return made
        case "oneOf" if lot.random() < 0.5:
            tagged = lambda tag: {"t": {"const": tag}, "v": inner()}  # noqa: E731
            return {"oneOf": [{"type": "object", "properties": tagged(tag), "required": ["t"]} for tag in "pq"]}
        case word:
            beside = lot.choice([{}, {}, {"type": "object"}, {"properties": {"a": inner()}}])
            return {word: [inner() for _ in range(lot.randint(1, 3))], **beside}


def walk(matcher, tokenizer, lot: random.Random, tokens: int = 400, seen=lambda matcher, mask: None):
    """What a lot writes under the masks, or None where it came to no end. It likes what ends things."""
    ids = []
    while not matcher.ended and len(ids) < tokens:
        ids += matcher.forced()
        if matcher.ended or (matcher.complete and lot.random() < 0.5):
            break
        mask = matcher.mask()
        seen(matcher, mask)
        allowed = [int(i) for i in mask.nonzero()[0] if i not in tokenizer.end]
        if not allowed:
            break
        ending = [i for i in allowed if tokenizer.decode([i]) in set('"}],)x1')] if len(allowed) < 1_000 else []
        ids.append(lot.choice(ending if ending and lot.random() < 0.6 else allowed))
        matcher.accept(ids[-1])
    return tokenizer.decode(ids) if matcher.complete or matcher.ended else None
