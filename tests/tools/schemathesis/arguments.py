"""Makes schemas and arguments that they allow, as another validator sees it: `make FILE COUNT`.
Holds the same arguments against schemas that were rewritten: `judge FILE`; what does not fit on
stdout."""

import json
import random
import sys

import jsonschema_rs

NAMES = ["a", "b", "c"]
VALUES = [None, True, 0, 1, 1.0, 2.5, -3, "", "a", "abc", [], [1], ["a", 1], {}, {"a": 1}]
TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"]


def schema(rng, depth):
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([True, {}, {"type": rng.choice(TYPES)}, {"$ref": "#/$defs/x"}])
    deeper = lambda: schema(rng, depth - 1)
    several = lambda: [deeper() for _ in range(rng.randint(1, 3))]
    number = lambda: rng.randint(-1, 3)
    size = lambda: rng.randint(0, 2)
    names = lambda: rng.sample(NAMES, rng.randint(0, 2))
    keywords = {
        "type": lambda: rng.choice([rng.choice(TYPES), rng.sample(TYPES, 3)]),
        "properties": lambda: {name: deeper() for name in names()},
        "required": names,
        "additionalProperties": lambda: rng.choice([False, deeper()]),
        "patternProperties": lambda: {"^a": deeper()},
        "propertyNames": lambda: {"maxLength": size()},
        "items": deeper,
        "prefixItems": several,
        "contains": deeper,
        "minContains": size,
        "maxContains": size,
        "enum": lambda: rng.sample(VALUES, 5),
        "const": lambda: rng.choice(VALUES),
        "minimum": number,
        "maximum": number,
        "exclusiveMinimum": number,
        "exclusiveMaximum": number,
        "minLength": size,
        "maxLength": size,
        "minItems": size,
        "maxItems": size,
        "minProperties": size,
        "maxProperties": size,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": deeper,
        "if": deeper,
        "then": deeper,
        "else": deeper,
        "dependentSchemas": lambda: {"a": deeper()},
        "unevaluatedProperties": lambda: rng.choice([False, deeper()]),
        "unevaluatedItems": lambda: rng.choice([False, deeper()]),
        "$ref": lambda: rng.choice(["#/$defs/x", "#/$defs/y", "#"]),
    }
    chosen = rng.sample(list(keywords), rng.randint(1, 4))
    return {keyword: keywords[keyword]() for keyword in chosen}


def value(rng, depth):
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(VALUES)
    if rng.random() < 0.5:
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    return arguments(rng, depth - 1)


def arguments(rng, depth):
    return {name: value(rng, depth) for name in rng.sample(NAMES, rng.randint(0, 3))}


def case(rng):
    """One that is allowed, or None."""
    whole = {"type": "object", **(top if isinstance(top := schema(rng, 3), dict) else {})}
    whole["$defs"] = {"x": schema(rng, 2), "y": schema(rng, 2)}
    given = arguments(rng, 2)
    try:
        allowed = jsonschema_rs.Draft202012Validator(whole).is_valid(given)
    except (ValueError, RecursionError):
        return None
    return {"schema": whole, "arguments": given} if allowed else None


def make(path, count):
    rng = random.Random(7)
    cases = []
    for _ in range(count * 50):
        found = case(rng)
        if found:
            cases.append(found)
        if len(cases) == count:
            break
    with open(path, "w") as file:
        json.dump(cases, file)


def judge(path):
    with open(path) as file:
        cases = json.load(file)
    for found in cases:
        spelled = found["rewritten"]
        if not jsonschema_rs.meta.is_valid({"$schema": "https://json-schema.org/draft/2020-12/schema", **spelled}):
            print("no schema:", json.dumps(found))
        elif not jsonschema_rs.Draft202012Validator(spelled).is_valid(found["arguments"]):
            print("refused:", json.dumps(found))


if sys.argv[1] == "make":
    make(sys.argv[2], int(sys.argv[3]))
else:
    judge(sys.argv[2])
