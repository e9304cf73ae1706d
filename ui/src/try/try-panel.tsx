import { Play, Square } from 'lucide-react';
import { useState } from 'react';
import { useText } from '../i18n';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { Segmented } from '../parts/segmented';
import type { CatalogTool } from '../store/tools';
import { Arguments, type Mode } from './arguments';
import { Asking } from './asking';
import { Outcome } from './outcome';
import { ProgressBar } from './progress';
import { useCall } from './use-call';
import { check, initial, isValues, toText, type Values } from './values';

/** Calls one tool, as any client would. */
export function TryPanel({ tool }: { tool: CatalogTool }) {
  const t = useText();
  const schema = tool.inputSchema;
  const [mode, setMode] = useState<Mode>('form');
  const [values, setValues] = useState<Values>(() => initial(schema));
  const [text, setText] = useState('');
  const [problems, setProblems] = useState<Record<string, string>>({});
  const call = useCall(tool.server, tool);
  const running = call.state.kind === 'running';

  const switchTo = (next: Mode) => {
    if (next === 'json') {
      setText(toText(values));
    } else {
      const parsed = parse(text, t.tryIt);
      if (typeof parsed !== 'string') {
        setValues(parsed);
      }
    }
    setProblems({});
    setMode(next);
  };
  const run = () => {
    const given = mode === 'json' ? parse(text, t.tryIt) : values;
    if (typeof given === 'string') {
      setProblems({ '': given });
      return;
    }
    const found = mode === 'json' ? {} : check(schema, given, t);
    setProblems(found);
    if (Object.keys(found).length === 0) {
      call.run(given);
    }
  };

  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      <div className="mb-3 flex items-center justify-between gap-3">
        <h4 className="text-sm font-semibold">{t.detail.arguments}</h4>
        <Segmented label={t.detail.arguments} value={mode} onChange={switchTo} options={[{ value: 'form', label: t.tryIt.form }, { value: 'json', label: t.tryIt.json }]} />
      </div>
      <Arguments mode={mode} schema={schema} values={values} onValues={setValues} text={text} onText={setText} problems={problems} onRun={run} />
      <div className="mt-4 flex items-center gap-2">
        <Button kind="solid" type="submit" disabled={running}>
          <Play size={14} aria-hidden />
          {running ? t.tryIt.running : t.tryIt.run}
        </Button>
        {running || call.state.kind === 'asking' ? (
          <Button onClick={call.cancel}>
            <Square size={12} aria-hidden />
            {t.tryIt.cancel}
          </Button>
        ) : null}
      </div>
      <div aria-live="polite" className="mt-4 empty:hidden">
        {call.state.kind === 'running' ? <ProgressBar progress={call.state.progress} /> : null}
        {call.state.kind === 'exhausted' ? <Notice>{t.tryIt.rounds}</Notice> : null}
        {call.state.kind === 'cancelled' ? <p className="text-sm text-ink-2">{t.tryIt.cancelled}</p> : null}
        <Outcome state={call.state} />
        {call.logs.length > 0 ? (
          <details className="mt-3">
            <summary className="text-sm font-medium text-ink-2">{t.tryIt.logs} ({call.logs.length})</summary>
            <pre className="mt-2 max-h-48 overflow-auto rounded-lg border border-line bg-sunken p-3 font-mono text-xs whitespace-pre-wrap">{call.logs.join('\n')}</pre>
          </details>
        ) : null}
      </div>
      {call.state.kind === 'asking' ? <Asking server={tool.server} requests={call.state.requests} onAnswer={call.answer} onCancel={call.cancel} /> : null}
    </form>
  );
}

function parse(text: string, words: { badJson: string; mustObject: string }): Values | string {
  try {
    const value: unknown = JSON.parse(text.trim() || '{}');
    return isValues(value) ? value : words.mustObject;
  } catch (error) {
    return `${words.badJson}: ${error instanceof Error ? error.message : ''}`;
  }
}
