import { useText } from '../../i18n';
import { duration, useNow } from '../../parts/time';

/** How long until a server is tried again. */
export function RetryIn({ at }: { at: number }) {
  const t = useText();
  const left = at - useNow(500);
  return (
    <span className="num text-xs text-ink-3" data-retry>
      {left > 0 ? t.servers.retryIn(duration(left, t)) : t.servers.retryNow}
    </span>
  );
}
