import * as Radix from '@radix-ui/react-dialog';
import { X } from 'lucide-react';
import { useEffect, useId, useState, type ReactNode } from 'react';
import { useText } from '../i18n';
import { setUnsaved } from '../store/kept';
import { Button } from './button';
import { IconButton } from './icon-button';
import { useOrigin } from './origin';

interface Props {
  onClose: () => void;
  title: ReactNode;
  description?: string;
  wide?: boolean;
  children: ReactNode;
  /** Its buttons close by `close`, which asks first where something would be lost. */
  footer?: (close: () => void) => ReactNode;
  /** What closing would lose, as a question; none: nothing. */
  loses?: string | undefined;
}

// Radix's own overlay locks scrolling with an inline style sheet, which the
// page's policy forbids; a plain element does.
export function Scrim() {
  return <div className="fixed inset-0 z-40 animate-fade bg-scrim" />;
}

export function Dialog({ onClose, title, description, wide = false, children, footer, loses }: Props) {
  const t = useText();
  const id = useId();
  const origin = useOrigin();
  // What had the focus when the question came up; undefined while there is none.
  const [typing, setTyping] = useState<Element | null>();
  const stay = () => {
    setTyping(undefined);
    if (typing instanceof HTMLElement) {
      typing.focus();
    }
  };
  const close = () => {
    if (loses === undefined) {
      onClose();
    } else if (typing === undefined) {
      setTyping(document.activeElement);
    } else {
      // Escape, pressed again, is no answer to the question.
      stay();
    }
  };
  useEffect(() => {
    setUnsaved(id, loses !== undefined);
    return () => setUnsaved(id, false);
  }, [id, loses]);
  return (
    <Radix.Root open onOpenChange={(next) => !next && close()}>
      <Radix.Portal>
        <Scrim />
        <Radix.Content
          {...origin}
          {...(description ? {} : { 'aria-describedby': undefined })}
          className={`fixed inset-x-0 bottom-0 z-50 mx-auto flex max-h-[92dvh] w-full animate-rise flex-col rounded-t-xl border border-line bg-raised shadow-pop focus:outline-none sm:top-[8dvh] sm:bottom-auto sm:max-h-[84dvh] sm:w-[calc(100%-2rem)] sm:rounded-xl ${wide ? 'sm:max-w-3xl' : 'sm:max-w-lg'}`}
        >
          <header className="flex items-start gap-3 px-5 pt-4 pb-3">
            <div className="min-w-0 flex-1">
              <Radix.Title className="truncate text-lg font-semibold tracking-tight">{title}</Radix.Title>
              {description ? (
                <Radix.Description className="mt-0.5 text-base text-ink-2">{description}</Radix.Description>
              ) : null}
            </div>
            <IconButton label={t.common.close} onClick={close} className="-mt-1 -mr-2">
              <X size={16} aria-hidden />
            </IconButton>
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto px-5 pb-5">{children}</div>
          {/* The keys keep "go back" from becoming the button that saves, within its own click. */}
          {typing !== undefined && loses !== undefined ? (
            <Footer key="question">
              <p role="alert" className="mr-auto min-w-0 text-sm text-warn-ink">
                {loses}
              </p>
              <Button onClick={stay} autoFocus>
                {t.common.stay}
              </Button>
              <Button kind="danger" onClick={onClose}>
                {t.common.discard}
              </Button>
            </Footer>
          ) : footer ? (
            <Footer key="buttons">{footer(close)}</Footer>
          ) : null}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function Footer({ children }: { children: ReactNode }) {
  return (
    <footer className="flex flex-wrap items-center justify-end gap-2 border-t border-line bg-sunken px-5 py-3 sm:rounded-b-xl">
      {children}
    </footer>
  );
}
