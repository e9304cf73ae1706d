import type { ReactNode } from 'react';

interface Props {
  icon: ReactNode;
  title: string;
  text: string;
  children?: ReactNode;
}

export function Empty({ icon, title, text, children }: Props) {
  return (
    <div className="grid-paper grid place-items-center rounded-xl border border-dashed border-line-strong px-6 py-16 text-center">
      <div className="mb-4 grid size-12 place-items-center rounded-xl border border-line bg-panel text-ink-2 shadow-card">
        {icon}
      </div>
      <h2 className="text-lg font-semibold tracking-tight">{title}</h2>
      <p className="mt-1 max-w-md text-base text-pretty text-ink-2">{text}</p>
      {children ? <div className="mt-5 flex flex-wrap justify-center gap-2">{children}</div> : null}
    </div>
  );
}
