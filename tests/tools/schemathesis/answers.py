"""Holds answers against the document: {"document": ..., "answers": [{"path", "body"}]} in the
file named; what does not fit on stdout."""

import json
import sys

import jsonschema_rs

with open(sys.argv[1]) as file:
    given = json.load(file)
document = given["document"]
for answer in given["answers"]:
    responses = document["paths"][answer["path"]]["get"]["responses"]
    schema = responses["200"]["content"]["application/json"]["schema"]
    schema = {**schema, "components": document["components"]}
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    for error in validator.iter_errors(answer["body"]):
        print(f"{answer['path']}: {error.instance_path}: {error.message}")
