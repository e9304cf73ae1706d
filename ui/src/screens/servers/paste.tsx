import { useState } from 'react';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Field } from '../../parts/field';
import type { Draft } from './draft';
import { pasted } from './pasted';

const SAMPLE = '{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "…"] } } }';

interface Props {
  text: string;
  onText: (text: string) => void;
  onUse: (drafts: Draft[]) => void;
}

export function Paste({ text, onText, onUse }: Props) {
  const t = useText();
  const [bad, setBad] = useState(false);
  const use = () => {
    const found = pasted(text);
    setBad(found.length === 0);
    if (found.length > 0) {
      onUse(found);
    }
  };
  return (
    <div className="mb-5 rounded-lg border border-line bg-sunken p-3">
      <Field label={t.form.paste} hint={t.form.pasteHint} error={bad ? t.form.pasteBad : undefined}>
        {(wired) => (
          <textarea
            {...wired}
            autoFocus
            rows={4}
            spellCheck={false}
            placeholder={SAMPLE}
            value={text}
            onChange={(event) => onText(event.target.value)}
            className="field py-2 font-mono text-xs"
          />
        )}
      </Field>
      <Button small className="mt-2" disabled={text.trim() === ''} onClick={use}>
        {t.form.pasteUse}
      </Button>
    </div>
  );
}
