/** The data of each event of an answer that streams. */
export async function* eventsOf(response: Response): AsyncGenerator<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) {
    return;
  }
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    rest += value ?? '';
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = done ? '' : (blocks.pop() ?? '');
    for (const block of blocks) {
      const data = dataOf(block);
      if (data !== '') {
        yield data;
      }
    }
    if (done) {
      return;
    }
  }
}

function dataOf(block: string): string {
  return block
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''))
    .join('\n');
}
