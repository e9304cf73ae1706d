// Answers of the API: errors and the fields they name, event streams.
import assert from 'node:assert/strict';
import test from 'node:test';
import { failure } from '../../src/api/http';
import { eventsOf } from '../../src/api/sse';

const refused = (status: number, body: unknown) =>
  failure(new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, statusText: 'Refused' }));

test('h4 an error names its fields by its details, whatever its status and text', async () => {
  const details = [{ field: 'name', message: 'taken' }];
  for (const status of [409, 422]) {
    const { code, message, fields } = await refused(status, { error: { code: 'C', message: 'any text', details } });
    assert.deepEqual([code, message, fields], ['C', 'any text', details]);
  }
  for (const other of [undefined, { etag: '"1"', config: {} }, ['name'], [null], [{ message: 'no field' }], 'name']) {
    assert.deepEqual((await refused(409, { error: { message: 'name', details: other } })).fields, []);
  }
});

test('h4 an answer that is not from Portway is named by its status', async () => {
  const { code, message, fields } = await refused(502, '<html>');
  assert.deepEqual([code, message, fields], ['HTTP_502', '502 Refused', []]);
});

test('h3 an event stream is read however it is cut', async () => {
  const text = ': beat\n\ndata: {"a":1}\r\n\r\nevent: x\ndata:two\ndata: lines\n\ndata: last';
  for (const size of [1, 7, text.length]) {
    const chunks = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < text.length; at += size) {
          controller.enqueue(new TextEncoder().encode(text.slice(at, at + size)));
        }
        controller.close();
      },
    });
    const found: string[] = [];
    for await (const event of eventsOf(new Response(chunks))) {
      found.push(event);
    }
    assert.deepEqual(found, ['{"a":1}', 'two\nlines', 'last'], `in chunks of ${size}`);
  }
  for await (const event of eventsOf(new Response(null))) {
    assert.fail(event);
  }
});
