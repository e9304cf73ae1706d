import * as Radix from '@radix-ui/react-dialog';
import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { useText } from '../i18n';
import { IconButton } from './icon-button';

interface Props {
  open: boolean;
  onClose: () => void;
  title: ReactNode;
  description?: string;
  wide?: boolean;
  children: ReactNode;
  footer?: ReactNode;
  /** Something would be lost: a click beside the dialog does not close it. */
  guarded?: boolean;
}

// Radix's own overlay locks scrolling with an inline style sheet, which the
// page's policy forbids; a plain element does.
export function Scrim() {
  return <div className="fixed inset-0 z-40 animate-fade bg-scrim" />;
}

export function Dialog({ open, onClose, title, description, wide = false, children, footer, guarded = false }: Props) {
  const t = useText();
  return (
    <Radix.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Scrim />
        <Radix.Content
          {...(description ? {} : { 'aria-describedby': undefined })}
          onPointerDownOutside={(event) => guarded && event.preventDefault()}
          className={`fixed inset-x-0 bottom-0 z-50 mx-auto flex max-h-[92dvh] w-full animate-rise flex-col rounded-t-xl border border-line bg-raised shadow-pop focus:outline-none sm:top-[8dvh] sm:bottom-auto sm:max-h-[84dvh] sm:w-[calc(100%-2rem)] sm:rounded-xl ${wide ? 'sm:max-w-3xl' : 'sm:max-w-lg'}`}
        >
          <header className="flex items-start gap-3 px-5 pt-4 pb-3">
            <div className="min-w-0 flex-1">
              <Radix.Title className="truncate text-lg font-semibold tracking-tight">{title}</Radix.Title>
              {description ? (
                <Radix.Description className="mt-0.5 text-base text-ink-2">{description}</Radix.Description>
              ) : null}
            </div>
            <Radix.Close asChild>
              <IconButton label={t.common.close} className="-mt-1 -mr-2">
                <X size={16} aria-hidden />
              </IconButton>
            </Radix.Close>
          </header>
          <div className="min-h-0 flex-1 overflow-y-auto px-5 pb-5">{children}</div>
          {footer ? (
            <footer className="flex flex-wrap items-center justify-end gap-2 border-t border-line bg-sunken px-5 py-3 sm:rounded-b-xl">
              {footer}
            </footer>
          ) : null}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
