import * as Radix from '@radix-ui/react-dialog';
import type { ReactNode } from 'react';
import { Scrim } from './dialog';
import { useOrigin } from './origin';

interface Props {
  onClose: () => void;
  title: string;
  children: ReactNode;
}

/** A sheet from the right; its content shows the title itself. */
export function Drawer({ onClose, title, children }: Props) {
  const origin = useOrigin();
  return (
    <Radix.Root open onOpenChange={(next) => !next && onClose()}>
      <Radix.Portal>
        <Scrim />
        <Radix.Content
          {...origin}
          aria-describedby={undefined}
          onOpenAutoFocus={(event) => {
            // The sheet itself, so that no button's hint pops up.
            event.preventDefault();
            (event.currentTarget as HTMLElement | null)?.focus();
          }}
          className="fixed inset-y-0 right-0 z-50 flex w-full max-w-3xl animate-slide flex-col border-l border-line bg-panel shadow-pop focus:outline-none"
        >
          <Radix.Title className="sr-only">{title}</Radix.Title>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
