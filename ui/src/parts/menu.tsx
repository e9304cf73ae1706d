import * as Radix from '@radix-ui/react-dropdown-menu';
import type { ReactElement, ReactNode } from 'react';

export function Menu({ trigger, children }: { trigger: ReactElement; children: ReactNode }) {
  return (
    // Not modal: a modal one locks scrolling with an inline style sheet.
    <Radix.Root modal={false}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          align="end"
          sideOffset={6}
          collisionPadding={8}
          className="z-60 max-h-(--radix-dropdown-menu-content-available-height) max-w-80 min-w-44 animate-rise overflow-y-auto rounded-lg border border-line bg-raised p-1 shadow-pop"
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ItemProps {
  icon?: ReactNode;
  danger?: boolean;
  checked?: boolean;
  onSelect: () => void;
  children: ReactNode;
}

export function MenuItem({ icon, danger = false, checked, onSelect, children }: ItemProps) {
  return (
    <Radix.Item
      onSelect={onSelect}
      {...(checked === undefined ? {} : { role: 'menuitemradio', 'aria-checked': checked })}
      className={`flex h-8 items-center gap-2.5 rounded-md px-2 text-base outline-none select-none data-[highlighted]:bg-hover ${danger ? 'text-bad-ink' : ''} ${checked ? 'font-medium text-accent' : ''}`}
    >
      {icon ? <span className={danger ? '' : 'text-ink-3'}>{icon}</span> : null}
      {children}
    </Radix.Item>
  );
}

export function MenuLine() {
  return <Radix.Separator className="my-1 h-px bg-line" />;
}
