"""Two descriptions as people write them: a shop of pets in YAML (3.0), and the weather as a value (3.1)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

PETS = """\
openapi: 3.0.3
info: {title: Pets, version: 1.0.0}
servers:
  - url: https://pets.example/v1
tags:
  - name: no
paths:
  /pets:
    summary: All pets
    parameters:
      - $ref: '#/components/parameters/Trace'
    get:
      operationId: listPets
      summary: List pets
      description: |
        List pets of the shop, the newest first.
        One page at a time.
      parameters:
        - name: limit
          in: query
          schema: {type: integer, minimum: 1, maximum: 100, exclusiveMaximum: true, example: 20}
        - {name: tags, in: query, description: All of these., schema: {type: array, items: {type: string}}}
        - {name: kinds, in: query, explode: false, schema: {type: array, items: {type: string}}}
        - {name: sold, in: query, schema: {type: boolean, nullable: true}}
        - name: filter
          in: query
          style: deepObject
          explode: true
          schema: {type: object, properties: {age: {type: integer}}}
      responses:
        200:
          description: Pets
          content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}}
    post:
      operationId: addPet
      summary: Add a pet.
      parameters:
        - {name: Idempotency-Key, in: header, required: true, schema: {type: string}}
      requestBody:
        required: true
        content:
          application/xml: {schema: {type: string}}
          application/json: {schema: {$ref: '#/components/schemas/Pet'}}
      responses: {201: {description: Added}}
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer, format: int64}}
    get:
      operationId: getPet
      summary: One pet
      responses: {200: {description: The pet}}
    put:
      operationId: replacePet
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/Known'}}}
      responses: {200: {description: The pet}}
    delete:
      summary: Remove a pet
      parameters:
        - {name: api_key, in: header, schema: {type: string}}
      responses: {204: {description: Gone}}
  /shops/{shop}/pets/{id}/photo:
    head:
      operationId: hasPhoto
      parameters:
        - {name: shop, in: path, required: true, schema: {type: string}}
        - {name: id, in: path, required: true, schema: {type: string}}
      responses: {200: {description: It has}}
components:
  parameters:
    Trace: {name: X-Trace, in: header, schema: {type: string}}
  schemas:
    Pet:
      type: object
      required: [id, name]
      xml: {name: pet}
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, example: Rex, x-order: 1}
        kind: {$ref: '#/components/schemas/Kind'}
        owner:
          nullable: true
          allOf: [{$ref: '#/components/schemas/Person'}]
    Known:
      type: object
      required: [id, name]
      properties: {id: {type: integer}, name: {type: string}}
    Kind: {type: string, enum: ["dog", "cat", "no", "007"], default: "no", externalDocs: {url: 'https://pets.example'}}
    Person: {type: object, properties: {name: {type: string}, email: {type: string, writeOnly: true}}}
"""

WEATHER: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Weather", "version": "2"},
    "servers": [{"url": "https://weather.example/api/"}],
    "paths": {
        "/places/{place}/forecast": {
            "get": {
                "operationId": "forecast.forPlace",
                "summary": "Forecast",
                "description": "The forecast for a place.",
                "parameters": [
                    {"name": "place", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "days", "in": "query", "schema": {"type": ["integer", "null"], "default": 3}},
                    {"name": "at", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
                    {"name": "between", "in": "query", "style": "pipeDelimited", "schema": {"type": "array"}},
                    {"name": "Accept-Language", "in": "header", "schema": {"type": "string"}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                ],
            }
        },
        "/reports": {
            "post": {
                "operationId": "search reports",
                "requestBody": {
                    "content": {"application/vnd.weather+json; charset=utf-8": {"schema": {"type": "array"}}}
                },
            },
            "patch": {"description": "Change a report."},
        },
    },
}


def weather(**operation: Any) -> dict[str, Any]:
    """The weather with a description of its own: `path` and `method` with this operation, and nothing else."""
    path, method = operation.pop("path", "/x"), operation.pop("method", "get")
    parts = operation.pop("parts", {})
    made = deepcopy(WEATHER) | {"paths": {path: {method: {"operationId": "op", **operation}}}, "components": parts}
    return made | {"openapi": operation.get("version", "3.1.0")}
