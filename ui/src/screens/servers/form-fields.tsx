import { Globe, Radio, Terminal } from 'lucide-react';
import type { FieldProblem } from '../../api/http';
import type { ServerConfig, Transport } from '../../api/types';
import { useText } from '../../i18n';
import { Field } from '../../parts/field';
import { Toggle } from '../../parts/toggle';
import { Arguments } from './arguments';
import { spread, type Draft } from './draft';
import { Pairs } from './pairs';

interface Props {
  draft: Draft;
  /** The saved definition; undefined for a new server. */
  base: ServerConfig | undefined;
  change: (part: Partial<Draft>) => void;
  problems: FieldProblem[];
  isNew: boolean;
}

export function FormFields({ draft, base, change, problems, isNew }: Props) {
  const t = useText();
  const wrong = (field: string) =>
    problems
      .filter(
        (problem) =>
          problem.field === field || problem.field.startsWith(`${field}.`) || problem.field.startsWith(`${field}[`),
      )
      .map((problem) =>
        problem.field === field
          ? problem.message
          : `${problem.field.slice(field.length).replace(/^\./, '')}: ${problem.message}`,
      )
      .join('\n') || undefined;
  return (
    <div className="space-y-4">
      <Field label={t.form.name} hint={isNew ? t.form.nameHint : undefined} error={wrong('name')}>
        {(wired) => (
          <input
            {...wired}
            autoFocus={isNew}
            autoComplete="off"
            spellCheck={false}
            value={draft.name}
            onChange={(event) => change({ name: event.target.value })}
            className="field h-9"
          />
        )}
      </Field>
      <TransportChoice value={draft.transport} onChange={(transport) => change({ transport })} />
      {draft.transport === 'stdio' ? (
        <>
          <Field label={t.form.command} hint={isNew ? t.form.commandHint : undefined} error={wrong('command')}>
            {(wired) => (
              <input
                {...wired}
                autoComplete="off"
                spellCheck={false}
                placeholder="npx"
                value={draft.command}
                onChange={(event) => change({ command: event.target.value })}
                onPaste={(event) => {
                  const text = event.clipboardData.getData('text/plain').trim();
                  const next = spread({ ...draft, command: text });
                  const field = event.currentTarget;
                  const replaces = field.selectionStart === 0 && field.selectionEnd === field.value.length;
                  if (replaces && next.command !== text) {
                    event.preventDefault();
                    change(next);
                  }
                }}
                onBlur={() => {
                  // A saved command may contain spaces, and so may a path.
                  if (draft.command !== base?.command && !draft.command.trim().startsWith('/')) {
                    change(spread(draft));
                  }
                }}
                className="field h-9 font-mono text-sm"
              />
            )}
          </Field>
          <Arguments args={draft.args} onChange={(args) => change({ args })} error={wrong('args')} />
          <Pairs
            label={t.form.env}
            nameLabel={t.form.variable}
            addLabel={t.form.addVariable}
            pairs={draft.env}
            onChange={(env) => change({ env })}
            error={wrong('env')}
            lines
          />
        </>
      ) : (
        <>
          <Field label={t.form.url} error={wrong('url')}>
            {(wired) => (
              <input
                {...wired}
                type="url"
                spellCheck={false}
                placeholder="https://example.com/mcp"
                value={draft.url}
                onChange={(event) => change({ url: event.target.value })}
                className="field h-9 font-mono text-sm"
              />
            )}
          </Field>
          <Pairs
            label={t.form.headers}
            nameLabel={t.form.header}
            addLabel={t.form.addHeader}
            pairs={draft.headers}
            onChange={(headers) => change({ headers })}
            error={wrong('headers')}
          />
        </>
      )}
      {isNew ? (
        <SwitchRow
          label={t.form.startNow}
          hint={t.form.startNowHint}
          checked={draft.startNow}
          onChange={(startNow) => change({ startNow })}
        />
      ) : null}
      <Advanced draft={draft} change={change} wrong={wrong} />
    </div>
  );
}

const CHOICES = [
  ['stdio', Terminal],
  ['http', Globe],
  ['sse', Radio],
] as const;

function TransportChoice({ value, onChange }: { value: Transport; onChange: (value: Transport) => void }) {
  const t = useText();
  const hints = { stdio: t.form.stdioHint, http: t.form.httpHint, sse: t.form.sseHint };
  return (
    <fieldset>
      <legend className="mb-1.5 text-sm font-medium">{t.form.transport}</legend>
      <div className="grid grid-cols-1 gap-2 sm:grid-cols-3">
        {CHOICES.map(([transport, Icon]) => (
          <label
            key={transport}
            className="flex cursor-pointer items-start gap-2.5 rounded-lg border border-line-strong p-2.5 transition-colors hover:bg-hover has-checked:border-accent has-checked:bg-accent-soft has-focus-visible:outline-2 has-focus-visible:outline-accent"
          >
            <input
              type="radio"
              name="transport"
              value={transport}
              checked={transport === value}
              onChange={() => onChange(transport)}
              className="sr-only"
            />
            <Icon size={16} aria-hidden className="mt-0.5 text-ink-2" />
            <span>
              <span className="block text-sm font-medium">{t.form[transport]}</span>
              <span className="block text-xs text-ink-2">{hints[transport]}</span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

interface SwitchProps {
  label: string;
  hint?: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}

function SwitchRow({ label, hint, checked, onChange }: SwitchProps) {
  return (
    <div className="flex items-center justify-between gap-4 rounded-lg border border-line px-3 py-2.5">
      <div>
        <p className="text-sm font-medium">{label}</p>
        {hint ? <p className="text-xs text-ink-3">{hint}</p> : null}
      </div>
      <Toggle label={label} checked={checked} onChange={onChange} />
    </div>
  );
}

interface AdvancedProps {
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  wrong: (field: string) => string | undefined;
}

function Advanced({ draft, change, wrong }: AdvancedProps) {
  const t = useText();
  return (
    <details className="group" open={Boolean(wrong('timeout') ?? wrong('cwd'))}>
      <summary className="w-fit rounded text-sm font-medium text-ink-2 hover:text-ink">{t.form.advanced}</summary>
      <div className="mt-3 grid grid-cols-1 gap-4 sm:grid-cols-2">
        <Field label={t.form.timeout} error={wrong('timeout')}>
          {(wired) => (
            <input
              {...wired}
              inputMode="numeric"
              value={draft.timeout}
              onChange={(event) => change({ timeout: event.target.value })}
              className="field num h-9"
            />
          )}
        </Field>
        {draft.transport === 'stdio' ? (
          <Field label={t.form.cwd} error={wrong('cwd')} optional>
            {(wired) => (
              <input
                {...wired}
                spellCheck={false}
                value={draft.cwd}
                onChange={(event) => change({ cwd: event.target.value })}
                className="field h-9 font-mono text-sm"
              />
            )}
          </Field>
        ) : null}
        <Field label={t.form.era} error={wrong('era')}>
          {(wired) => (
            <Choice
              wired={wired}
              value={draft.era}
              options={['auto', 'legacy', 'modern']}
              onChange={(era) => change({ era })}
            />
          )}
        </Field>
        <Field label={t.form.isolation} error={wrong('isolation')}>
          {(wired) => (
            <Choice
              wired={wired}
              value={draft.isolation}
              options={['auto', 'shared', 'principal', 'session']}
              onChange={(isolation) => change({ isolation })}
            />
          )}
        </Field>
        <div className="sm:col-span-2">
          <SwitchRow label={t.form.enabled} checked={draft.enabled} onChange={(enabled) => change({ enabled })} />
        </div>
      </div>
    </details>
  );
}

interface ChoiceProps {
  wired: object;
  value: string;
  options: string[];
  onChange: (value: string) => void;
}

function Choice({ wired, value, options, onChange }: ChoiceProps) {
  return (
    <select {...wired} value={value} onChange={(event) => onChange(event.target.value)} className="field h-9">
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
}
