import { Component, type ReactNode } from 'react';
import { createPortal } from 'react-dom';
import { useText } from '../i18n';
import { Button } from '../parts/button';
import { Notice } from '../parts/notice';
import { topmost } from '../parts/origin';
import { missing, tryAgain } from '../parts/part';
import { useCell } from '../store/cell';
import { reloadPage } from '../store/kept';
import { link } from '../store/live';

// A gateway that is back has the parts again, unless it is another version.
link.subscribe(() => {
  if (link.get() === 'live' && missing.get()) {
    tryAgain();
  }
});

/** Above everything, while a part of the console cannot be loaded. */
export function MissingPart() {
  const t = useText();
  const dialog = useCell(topmost);
  if (!useCell(missing)) {
    return null;
  }
  const notice = (
    <div
      data-above
      className="pointer-events-auto fixed inset-x-0 bottom-0 z-70 mx-auto w-full max-w-lg p-4"
      data-missing
    >
      <Notice title={t.rescue.missing} className="bg-raised shadow-pop">
        <p className="mb-2.5">{t.rescue.missingText}</p>
        <Ways onRetry={tryAgain} />
      </Notice>
    </div>
  );
  return dialog ? createPortal(notice, dialog) : notice;
}

interface Props {
  children: ReactNode;
}

/** What goes wrong inside stays inside. */
export class Boundary extends Component<Props, { failure: unknown }> {
  override state: { failure: unknown } = { failure: undefined };

  static getDerivedStateFromError(failure: unknown): { failure: unknown } {
    return { failure: failure ?? 'unknown' };
  }

  override render(): ReactNode {
    return this.state.failure === undefined ? (
      this.props.children
    ) : (
      <Failed failure={this.state.failure} onRetry={() => this.setState({ failure: undefined })} />
    );
  }
}

function Failed({ failure, onRetry }: { failure: unknown; onRetry: () => void }) {
  const t = useText();
  return (
    <Notice title={t.rescue.failed}>
      <p className="mb-2.5 font-mono text-xs">{String(failure)}</p>
      <Ways onRetry={onRetry} />
    </Notice>
  );
}

function Ways({ onRetry }: { onRetry: () => void }) {
  const t = useText();
  return (
    <div className="flex flex-wrap gap-2">
      <Button small onClick={onRetry}>
        {t.common.retry}
      </Button>
      <Button small onClick={reloadPage}>
        {t.rescue.reload}
      </Button>
    </div>
  );
}
