import { Play, Square } from 'lucide-react';
import { useMemo, useRef, useState } from 'react';
import { useText } from '../i18n';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { useHandOver } from '../parts/origin';
import { Segmented } from '../parts/segmented';
import { useCell } from '../store/cell';
import { useKept } from '../store/kept';
import { Arguments, type Mode } from './arguments';
import { Asking } from './asking';
import { Outcome } from './outcome';
import { ProgressBar } from './progress';
import { keyOf, type Subject } from './subject';
import { trialOf } from './trial';
import { check, initial, isValues, toText, type Values } from './values';

interface Form {
  mode: Mode;
  values: Values;
  text: string;
}

/** Calls one tool, reads one resource or gets one prompt, as any client would. */
export function TryPanel({ subject }: { subject: Subject }) {
  const t = useText();
  const { kind, server, schema } = subject;
  const key = keyOf(subject);
  const [form, setForm] = useKept<Form>(key, () => ({ mode: 'form', values: initial(schema), text: '' }));
  const [problems, setProblems] = useState<Record<string, string>>({});
  // The key alone decides which trial it is.
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const trial = useMemo(() => trialOf(subject), [key]);
  const state = useCell(trial.state);
  const logs = useCell(trial.logs);
  const running = state.kind === 'running';
  const { mode, values, text } = form;
  const runButton = useRef<HTMLButtonElement>(null);
  const handOver = useHandOver(runButton);

  const switchTo = (next: Mode) => {
    if (next === 'json') {
      setForm({ ...form, mode: next, text: toText(values) });
      setProblems({});
      return;
    }
    const parsed = parse(text, t.tryIt);
    if (typeof parsed === 'string') {
      // Invalid JSON has no form: the editor stays open, so that it can be corrected.
      setProblems({ '': parsed });
    } else {
      setForm({ ...form, mode: next, values: parsed });
      setProblems({});
    }
  };
  const run = () => {
    if (running) {
      return;
    }
    const given = mode === 'json' ? parse(text, t.tryIt) : values;
    if (typeof given === 'string') {
      setProblems({ '': given });
      return;
    }
    const found = mode === 'json' ? {} : check(schema, given, t);
    setProblems(found);
    if (Object.keys(found).length === 0) {
      trial.run(subject.request(given));
    }
  };
  const wrong = Object.keys(problems).filter(Boolean);

  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        run();
      }}
    >
      {kind === 'tool' ? (
        <div className="mb-3 flex items-center justify-between gap-3">
          <h4 className="text-sm font-semibold">{t.detail.arguments}</h4>
          <Segmented
            label={t.detail.arguments}
            value={mode}
            onChange={switchTo}
            options={[
              { value: 'form', label: t.tryIt.form },
              { value: 'json', label: t.tryIt.json },
            ]}
          />
        </div>
      ) : null}
      {kind === 'tool' || schema ? (
        <div className="mb-4">
          <Arguments
            mode={mode}
            schema={schema}
            values={values}
            onValues={(next) => setForm({ ...form, values: next })}
            text={text}
            onText={(next) => setForm({ ...form, text: next })}
            problems={problems}
            onRun={run}
          />
        </div>
      ) : null}
      {wrong.length > 0 ? <Notice className="mb-4">{t.tryIt.wrong(wrong.join(', '))}</Notice> : null}
      <div className="flex items-center gap-2">
        <Button kind="solid" type="submit" ref={runButton} busy={running}>
          <Play size={14} aria-hidden />
          {running ? t.tryIt.running : { tool: t.tryIt.run, resource: t.tryIt.read, prompt: t.tryIt.get }[kind]}
        </Button>
        {running || state.kind === 'asking' ? (
          <Button ref={handOver} onClick={() => trial.cancel()}>
            <Square size={12} aria-hidden />
            {t.tryIt.cancel}
          </Button>
        ) : null}
      </div>
      <div aria-live="polite" className="mt-4 empty:hidden">
        {running ? <ProgressBar progress={state.progress} /> : null}
        {state.kind === 'exhausted' ? <Notice>{t.tryIt.rounds}</Notice> : null}
        {state.kind === 'cancelled' ? <p className="text-sm text-ink-2">{t.tryIt.cancelled}</p> : null}
        <Outcome state={state} />
        {logs.length > 0 ? (
          <details className="mt-3">
            <summary className="text-sm font-medium text-ink-2">
              {t.tryIt.logs} ({logs.length})
            </summary>
            <pre className="mt-2 max-h-48 overflow-auto rounded-lg border border-line bg-sunken p-3 font-mono text-xs whitespace-pre-wrap">
              {logs.join('\n')}
            </pre>
          </details>
        ) : null}
      </div>
      {state.kind === 'asking' ? (
        <Asking
          key={state.state ?? ''}
          place={`${key} asks`}
          server={server}
          requests={state.requests}
          onAnswer={(answers) => trial.answer(answers)}
          onCancel={() => trial.cancel()}
        />
      ) : null}
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
