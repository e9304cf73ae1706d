import { CircleCheck, CircleX } from 'lucide-react';
import { useState } from 'react';
import type { CallResult, Content } from '../api/mcp';
import { useText } from '../i18n';
import { Code } from '../parts/code';
import { Segmented } from '../parts/segmented';
import { ContentBlock } from './content';
import type { CallState } from './trial';

export function Outcome({ state }: { state: CallState }) {
  const t = useText();
  if (state.kind === 'failed') {
    return (
      <section aria-label={t.tryIt.result}>
        <Heading bad text={t.tryIt.rpcError} took={state.took} />
        <Code text={state.message} className="border-bad-line text-bad-ink" />
        {state.data === undefined ? null : <Code text={JSON.stringify(state.data, null, 2)} className="mt-2" />}
      </section>
    );
  }
  return state.kind === 'done' ? <Done result={state.result} took={state.took} /> : null;
}

function Done({ result, took }: { result: CallResult; took: number }) {
  const t = useText();
  const [view, setView] = useState<'pretty' | 'raw'>('pretty');
  const content: Content[] = [
    ...(result.content ?? []),
    ...(result.contents ?? []).map((resource) => ({ type: 'resource', resource })),
  ];
  const messages = result.messages ?? [];
  const structured = result.structuredContent;
  return (
    <section aria-label={t.tryIt.result} data-result={result.isError ? 'error' : 'ok'}>
      <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
        <Heading bad={result.isError ?? false} text={result.isError ? t.tryIt.toolError : t.tryIt.result} took={took} />
        <Segmented
          label={t.tryIt.result}
          value={view}
          onChange={setView}
          options={[
            { value: 'pretty', label: t.tryIt.pretty },
            { value: 'raw', label: t.tryIt.raw },
          ]}
        />
      </div>
      {view === 'raw' ? (
        <Code text={JSON.stringify(result, null, 2)} className="max-h-128 overflow-auto" />
      ) : (
        <div className="space-y-2">
          {content.map((block, at) => (
            <ContentBlock key={at} block={block} />
          ))}
          {messages.map((message, at) => (
            <div key={at}>
              <p className="mt-3 mb-1.5 text-xs font-medium text-ink-2">
                {t.tryIt.roles[message.role] ?? message.role}
              </p>
              <ContentBlock block={message.content} />
            </div>
          ))}
          {structured === undefined ? null : (
            <div>
              <p className="mt-3 mb-1.5 text-xs font-medium text-ink-2">{t.tryIt.structured}</p>
              <Code text={JSON.stringify(structured, null, 2)} className="max-h-96 overflow-auto" />
            </div>
          )}
          {content.length + messages.length === 0 && structured === undefined ? (
            <p className="text-sm text-ink-3">{t.tryIt.empty}</p>
          ) : null}
        </div>
      )}
    </section>
  );
}

function Heading({ bad, text, took }: { bad: boolean; text: string; took: number }) {
  const t = useText();
  return (
    <p className={`mb-1 flex items-center gap-1.5 text-sm font-medium ${bad ? 'text-bad-ink' : 'text-good-ink'}`}>
      {bad ? <CircleX size={15} aria-hidden /> : <CircleCheck size={15} aria-hidden />}
      {text}
      <span className="num font-normal text-ink-3">{t.tryIt.took(took)}</span>
    </p>
  );
}
