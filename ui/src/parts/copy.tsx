import { Check, Copy as CopyIcon, TriangleAlert } from 'lucide-react';
import { useEffect, useState, type RefObject } from 'react';
import { useText } from '../i18n';
import { Button } from './button';

const KEYS = /Mac|iPhone|iPad/.test(navigator.userAgent) ? '⌘ C' : 'Ctrl C';
const STAY = { done: 1_600, failed: 10_000 };

/** Whether the text is in the clipboard now. */
async function write(text: string, beside: Element): Promise<boolean> {
  // Over plain HTTP from another machine there is no clipboard object.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  try {
    if (clipboard) {
      await clipboard.writeText(text);
      return true;
    }
  } catch {
    // Not allowed; the old way may be.
  }
  return writeBySelection(text, beside);
}

/** `beside`: a dialog takes the focus back from anything outside it. */
function writeBySelection(text: string, beside: Element): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr-only';
  beside.after(area);
  area.select();
  try {
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- there is no other way there
    return document.activeElement === area && document.execCommand('copy');
  } catch {
    return false;
  } finally {
    area.remove();
    if (beside instanceof HTMLElement) {
      beside.focus();
    }
  }
}

interface Props {
  text: string;
  label?: string;
  /** The element that shows the text: it is selected where copying fails. */
  shown: RefObject<HTMLElement | null>;
  onCopied?: () => void;
}

export function Copy({ text, label, shown, onCopied }: Props) {
  const t = useText();
  const [state, setState] = useState<'idle' | 'done' | 'failed'>('idle');
  useEffect(() => {
    if (state === 'idle') {
      return undefined;
    }
    const timer = window.setTimeout(() => setState('idle'), STAY[state]);
    return () => window.clearTimeout(timer);
  }, [state]);
  const copy = async (button: Element) => {
    if (await write(text, button)) {
      setState('done');
      onCopied?.();
      return;
    }
    setState('failed');
    if (shown.current) {
      window.getSelection()?.selectAllChildren(shown.current);
    }
  };
  const Icon = { idle: CopyIcon, done: Check, failed: TriangleAlert }[state];
  return (
    <Button small kind="plain" aria-label={label ?? t.common.copy} onClick={(event) => void copy(event.currentTarget)}>
      <Icon size={13} aria-hidden className={{ idle: '', done: 'text-good', failed: 'text-warn' }[state]} />
      <span aria-live="polite">
        {{ idle: t.common.copy, done: t.common.copied, failed: t.common.notCopied(KEYS) }[state]}
      </span>
    </Button>
  );
}
