// A model on loopback that does what it is told: `call TOOL {arguments}` in a message makes it call
// the tool, and then say what came back. It keeps what it was asked.

import { createServer } from 'node:http';
import { once } from 'node:events';

export async function startModel() {
  const asked = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk) => (body += chunk));
    request.on('end', () => {
      const question = JSON.parse(body || '{}');
      asked.push(question);
      answer(response, reply(question.messages ?? []), question.stream === true);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    asked,
    /** The names of the tools that it was offered last. */
    offered: () => (asked.at(-1)?.tools ?? []).map((tool) => tool.function.name),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function answer(response, message, streamed) {
  const choice = { index: 0, [streamed ? 'delta' : 'message']: message };
  const completion = {
    id: 'c1',
    object: streamed ? 'chat.completion.chunk' : 'chat.completion',
    created: 1,
    model: 'fake',
    choices: [{ ...choice, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
  const text = JSON.stringify(completion);
  response.writeHead(200, { 'content-type': streamed ? 'text/event-stream' : 'application/json' });
  response.end(streamed ? `data: ${text}\n\ndata: [DONE]\n\n` : text);
}

function reply(messages) {
  const told = messages.findLastIndex((message) => message.role === 'user' && order(message));
  if (told < 0) return { role: 'assistant', content: 'nothing to do' };
  const result = messages.slice(told).find((message) => message.role === 'tool');
  if (result) return { role: 'assistant', content: `it says: ${textOf(result)}` };
  const [name, args] = order(messages[told]);
  const call = { index: 0, id: `call_${messages.length}`, type: 'function', function: { name, arguments: args } };
  return { role: 'assistant', content: null, tool_calls: [call] };
}

/** `call TOOL {arguments}`, on a line of its own. */
function order(message) {
  return /^call (\S+) (.*)$/m.exec(textOf(message))?.slice(1);
}

function textOf({ content }) {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => part.text ?? '').join('\n');
}
