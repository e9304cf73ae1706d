import { useState } from 'react';
import { planFile } from '../../api/servers';
import type { Plan } from '../../api/types';
import { explained, useText } from '../../i18n';
import { Badge } from '../../parts/badge';
import { Button } from '../../parts/button';
import { Field } from '../../parts/field';
import { useKept } from '../../store/kept';
import { Section } from './settings';
import { Problems } from './sources';

const GROUPS = [
  ['added', 'good'],
  ['restarted', 'warn'],
  ['removed', 'bad'],
  ['kept', 'plain'],
] as const;

export function PlanFile() {
  const t = useText();
  const [text, setText] = useKept('plan', () => '');
  const [plan, setPlan] = useState<Plan>();
  const [error, setError] = useState<string>();
  const run = async () => {
    try {
      setPlan(await planFile(text));
      setError(undefined);
    } catch (failure) {
      setPlan(undefined);
      setError(explained(failure));
    }
  };
  const changes = plan ? plan.added.length + plan.restarted.length + plan.removed.length : 0;
  return (
    <Section title={t.settings.plan} text={t.settings.planText}>
      <Field label=".mcp.json" error={error}>
        {(wired) => (
          <textarea
            {...wired}
            rows={6}
            spellCheck={false}
            placeholder='{ "mcpServers": { … } }'
            value={text}
            onChange={(event) => setText(event.target.value)}
            className="field max-h-96 min-h-32 py-2 font-mono text-xs leading-5 [field-sizing:content]"
          />
        )}
      </Field>
      <Button className="mt-3" disabled={text.trim() === ''} onClick={run}>
        {t.settings.planRun}
      </Button>
      <div aria-live="polite">
        {plan ? (
          <div className="mt-4 space-y-3 rounded-xl border border-line bg-panel p-4 shadow-card" data-plan>
            {changes === 0 ? <p className="text-base">{t.settings.planNothing}</p> : null}
            {GROUPS.filter(([group]) => plan[group].length > 0).map(([group, tone]) => (
              <div key={group} className="flex flex-wrap items-center gap-1.5">
                <span className="w-32 shrink-0 text-sm text-ink-2">{t.settings[group]}</span>
                {plan[group].map((name) => (
                  <Badge key={name} tone={tone}>
                    {name}
                  </Badge>
                ))}
              </div>
            ))}
            <Problems problems={plan.problems} />
          </div>
        ) : null}
      </div>
    </Section>
  );
}
