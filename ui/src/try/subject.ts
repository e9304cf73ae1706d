// What can be tried: a tool, a resource or a prompt. Each has a form, and makes
// a request of what the form holds.

import type { McpRequest } from '../api/mcp';
import type { Prompt, Resource, Schema } from '../api/types';
import type { CatalogTool } from '../store/tools';
import { expand, schemaOf } from './template';
import type { Values } from './values';

export interface Subject {
  kind: 'tool' | 'resource' | 'prompt';
  server: string;
  /** The name of a tool or prompt, the URI or URI template of a resource. */
  name: string;
  /** None: there is nothing to fill in. */
  schema: Schema | undefined;
  request: (values: Values) => McpRequest;
}

export function toolSubject(tool: CatalogTool): Subject {
  const { server, name, inputSchema: schema } = tool;
  return {
    kind: 'tool',
    server,
    name,
    schema,
    request: (values) => ({ method: 'tools/call', params: { name, arguments: values }, schema }),
  };
}

export function resourceSubject(server: string, resource: Resource): Subject {
  const { uri, uriTemplate } = resource;
  if (uriTemplate !== undefined) {
    return {
      kind: 'resource',
      server,
      name: uriTemplate,
      schema: schemaOf(uriTemplate),
      request: (values) => reading(expand(uriTemplate, values)),
    };
  }
  return { kind: 'resource', server, name: uri ?? '', schema: undefined, request: () => reading(uri ?? '') };
}

/** A resource of which the reader knows the URI. */
export function uriSubject(server: string, label: string): Subject {
  const schema: Schema = { properties: { uri: { type: 'string', title: label, format: 'uri' } }, required: ['uri'] };
  return { kind: 'resource', server, name: '', schema, request: ({ uri }) => reading(String(uri)) };
}

export function promptSubject(server: string, prompt: Prompt): Subject {
  const { name } = prompt;
  const fields = prompt.arguments ?? [];
  const schema: Schema | undefined =
    fields.length === 0
      ? undefined
      : {
          properties: Object.fromEntries(
            fields.map((field) => [
              field.name,
              { type: 'string', ...(field.description ? { description: field.description } : {}) },
            ]),
          ),
          required: fields.filter((field) => field.required).map((field) => field.name),
        };
  return {
    kind: 'prompt',
    server,
    name,
    schema,
    request: (values) => ({ method: 'prompts/get', params: { name, arguments: values } }),
  };
}

function reading(uri: string): McpRequest {
  return { method: 'resources/read', params: { uri } };
}

/** The name under which the form of a subject is kept. */
export function keyOf({ kind, server, name }: Pick<Subject, 'kind' | 'server' | 'name'>): string {
  return `try ${JSON.stringify(kind === 'tool' ? [server, name] : [server, name, kind])}`;
}
