import { useText } from '../i18n';
import { Light, type Shade } from '../parts/light';
import { useCell } from '../store/cell';
import { link, type Link } from '../store/live';

const SHADE: Record<Link, Shade> = { live: 'good', polling: 'warn', down: 'bad', starting: 'idle' };

/** How fresh the page is. */
export function LinkState() {
  const t = useText();
  const state = useCell(link);
  const hint = {
    live: t.link.liveHint,
    polling: t.link.pollingHint,
    down: t.link.downHint,
    starting: t.link.startingHint,
  }[state];
  return (
    <p
      role="status"
      data-link={state}
      data-tip={hint}
      className="ml-1 flex h-6 cursor-default items-center gap-1 rounded-full pr-2 pl-1 text-xs text-ink-2"
    >
      <Light shade={SHADE[state]} beating={state === 'starting'} />
      {t.link[state]}
    </p>
  );
}
