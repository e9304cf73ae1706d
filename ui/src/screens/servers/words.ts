// A command line, taken apart as a POSIX shell would, without running one.

/** Outside quotes these make more of a line than one command. */
const OPERATORS = /[|&;<>()`\n]/;

/** Within double quotes a backslash escapes only these. */
const ESCAPED = /["\\$`]/;

/** Undefined where the line is no single command, or a quote is not closed. */
export function words(line: string): string[] | undefined {
  const found: string[] = [];
  // Undefined between words: '' is a word too.
  let word: string | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] ?? '';
    if (char === "'" || char === '"') {
      const quoted = char === "'" ? single(line, at + 1) : double(line, at + 1);
      if (!quoted) {
        return undefined;
      }
      word = (word ?? '') + quoted.text;
      at = quoted.end;
    } else if (char === '\\') {
      at += 1;
      // A line that goes on below.
      if (line[at] !== '\n') {
        word = (word ?? '') + (line[at] ?? '\\');
      }
    } else if (/[ \t\r]/.test(char)) {
      if (word !== undefined) {
        found.push(word);
      }
      word = undefined;
    } else if (OPERATORS.test(char)) {
      return undefined;
    } else {
      word = (word ?? '') + char;
    }
  }
  return word === undefined ? found : [...found, word];
}

interface Quoted {
  text: string;
  /** Where the closing quote is. */
  end: number;
}

function single(line: string, start: number): Quoted | undefined {
  const end = line.indexOf("'", start);
  return end < 0 ? undefined : { text: line.slice(start, end), end };
}

function double(line: string, start: number): Quoted | undefined {
  let text = '';
  for (let at = start; at < line.length; at += 1) {
    const char = line[at] ?? '';
    const next = line[at + 1] ?? '';
    if (char === '"') {
      return { text, end: at };
    }
    if (char === '\\' && (ESCAPED.test(next) || next === '\n')) {
      text += next === '\n' ? '' : next;
      at += 1;
    } else {
      text += char;
    }
  }
  return undefined;
}

export interface CommandLine {
  /** `NAME=value` in front of the command. */
  env: [string, string][];
  command: string;
  args: string[];
}

export function commandLine(line: string): CommandLine | undefined {
  const all = words(line.trim());
  const first = all?.findIndex((word) => !/^[A-Za-z_]\w*=/.test(word)) ?? -1;
  const command = all?.[first];
  if (!all || command === undefined) {
    return undefined;
  }
  const env = all.slice(0, first).map((word): [string, string] => {
    const at = word.indexOf('=');
    return [word.slice(0, at), word.slice(at + 1)];
  });
  return { env, command, args: all.slice(first + 1) };
}

/** A word as it would be typed. */
export function quoted(word: string): string {
  return /^[^\s"'\\|&;<>()`$*?]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
