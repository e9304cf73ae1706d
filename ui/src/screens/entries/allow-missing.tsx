import { useText } from '../../i18n';

/** Servers come and go: a record may name one that is not there now. */
export function AllowMissing({ checked, onChange }: { checked: boolean; onChange: (checked: boolean) => void }) {
  const t = useText();
  return (
    <label className="flex items-center gap-2 text-sm">
      <input
        type="checkbox"
        checked={checked}
        onChange={(event) => onChange(event.target.checked)}
        className="size-4 shrink-0 accent-accent"
      />
      {t.records.allowMissing}
    </label>
  );
}
