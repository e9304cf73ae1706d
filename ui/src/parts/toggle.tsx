import * as Switch from '@radix-ui/react-switch';

interface Props {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
  disabled?: boolean;
  id?: string;
}

export function Toggle({ label, checked, onChange, disabled = false, id }: Props) {
  return (
    <Switch.Root
      {...(id ? { id } : {})}
      aria-label={label}
      checked={checked}
      onCheckedChange={onChange}
      disabled={disabled}
      className="relative h-5 w-9 shrink-0 rounded-full bg-control transition-colors disabled:opacity-50 data-[state=checked]:bg-accent"
    >
      <Switch.Thumb className="block size-4 translate-x-0.5 rounded-full bg-white shadow-card transition-transform data-[state=checked]:translate-x-4.5" />
    </Switch.Root>
  );
}
