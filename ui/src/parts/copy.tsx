import { Check, Copy as CopyIcon } from 'lucide-react';
import { useEffect, useState } from 'react';
import { useText } from '../i18n';
import { Button } from './button';

async function write(text: string): Promise<void> {
  // Over plain HTTP from another machine there is no clipboard object.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard) {
    return clipboard.writeText(text);
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- there is no other way there
  document.execCommand('copy');
  area.remove();
}

export function Copy({ text, label }: { text: string; label?: string }) {
  const t = useText();
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (done) {
      const timer = window.setTimeout(() => setDone(false), 1600);
      return () => window.clearTimeout(timer);
    }
    return undefined;
  }, [done]);
  return (
    <Button small kind="plain" aria-label={label ?? t.common.copy} onClick={() => void write(text).then(() => setDone(true))}>
      {done ? <Check size={13} aria-hidden className="text-good" /> : <CopyIcon size={13} aria-hidden />}
      <span aria-live="polite">{done ? t.common.copied : t.common.copy}</span>
    </Button>
  );
}
