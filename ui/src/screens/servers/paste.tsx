import { useState } from 'react';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Field } from '../../parts/field';
import { pasted, type Draft } from './draft';

const SAMPLE = '{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "…"] } } }';

export function Paste({ onUse }: { onUse: (draft: Draft) => void }) {
  const t = useText();
  const [text, setText] = useState('');
  const [bad, setBad] = useState(false);
  const use = (value: string) => {
    const found = pasted(value);
    if (found) {
      onUse(found);
    }
    setBad(!found);
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
            onChange={(event) => setText(event.target.value)}
            className="field py-2 font-mono text-xs"
          />
        )}
      </Field>
      <Button small className="mt-2" disabled={text.trim() === ''} onClick={() => use(text)}>
        {t.form.pasteUse}
      </Button>
    </div>
  );
}
