import type { Progress } from '../api/mcp';
import { useText } from '../i18n';

export function ProgressBar({ progress }: { progress: Progress | undefined }) {
  const t = useText();
  const total = progress?.total;
  const share = progress && total ? Math.min(100, (progress.progress / total) * 100) : undefined;
  return (
    <div>
      <div className="mb-1.5 flex justify-between gap-3 text-xs text-ink-2">
        <span className="truncate">{progress?.message ?? t.tryIt.running}</span>
        {progress ? (
          <span className="num shrink-0">{total ? `${progress.progress} / ${total}` : progress.progress}</span>
        ) : null}
      </div>
      <div
        role="progressbar"
        aria-label={t.tryIt.running}
        aria-valuemin={0}
        aria-valuemax={100}
        {...(share === undefined ? {} : { 'aria-valuenow': Math.round(share) })}
        className="h-1.5 overflow-hidden rounded-full bg-hover"
      >
        <div
          className={`h-full rounded-full bg-accent transition-[width] ${share === undefined ? 'w-1/3 animate-beat' : ''}`}
          style={share === undefined ? {} : { width: `${share}%` }}
        />
      </div>
    </div>
  );
}
