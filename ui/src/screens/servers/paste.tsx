import { useRef, useState } from 'react';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Field } from '../../parts/field';
import type { Draft } from './draft';
import { pasted } from './pasted';

const SAMPLE = '{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "…"] } } }';

interface Props {
  text: string;
  onText: (text: string) => void;
  /** Whether using them would lose something that was typed. */
  replaces: (drafts: Draft[]) => boolean;
  onUse: (drafts: Draft[]) => void;
}

export function Paste({ text, onText, replaces, onUse }: Props) {
  const t = useText();
  const [error, setError] = useState<string>();
  /** Found, and not used before the question is answered. */
  const [waiting, setWaiting] = useState<Draft[]>();
  const area = useRef<HTMLTextAreaElement>(null);
  const use = () => {
    const { drafts, bad } = pasted(text);
    const wrong =
      bad.length > 0 ? t.form.pasteField(bad.join(', ')) : drafts.length === 0 ? t.form.pasteBad : undefined;
    setError(wrong);
    if (wrong === undefined) {
      (replaces(drafts) ? setWaiting : onUse)(drafts);
    }
  };
  return (
    <div className="mb-5 rounded-lg border border-line bg-sunken p-3">
      <Field label={t.form.paste} hint={t.form.pasteHint} error={error}>
        {(wired) => (
          <textarea
            {...wired}
            ref={area}
            autoFocus
            rows={4}
            spellCheck={false}
            placeholder={SAMPLE}
            value={text}
            onChange={(event) => {
              setWaiting(undefined);
              onText(event.target.value);
            }}
            className="field py-2 font-mono text-xs"
          />
        )}
      </Field>
      {waiting ? (
        <div className="mt-2 flex flex-wrap items-center gap-2">
          <p role="alert" className="mr-auto text-sm text-warn-ink">
            {t.form.replaces}
          </p>
          <Button
            small
            autoFocus
            onClick={() => {
              setWaiting(undefined);
              area.current?.focus();
            }}
          >
            {t.common.stay}
          </Button>
          <Button
            small
            kind="danger"
            onClick={() => {
              setWaiting(undefined);
              onUse(waiting);
            }}
          >
            {t.form.replace}
          </Button>
        </div>
      ) : (
        <Button small className="mt-2" disabled={text.trim() === ''} onClick={use}>
          {t.form.pasteUse}
        </Button>
      )}
    </div>
  );
}
