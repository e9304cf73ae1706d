import { useText } from '../../i18n';

/** As tall as what comes, so that nothing jumps. */
export function Skeleton() {
  const t = useText();
  return (
    <div aria-busy aria-label={t.common.loading} className="space-y-2">
      {[0, 1, 2].map((row) => (
        <div key={row} className="h-19 animate-beat rounded-xl border border-line bg-panel" />
      ))}
    </div>
  );
}
