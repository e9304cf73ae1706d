export type Shade = 'good' | 'warn' | 'bad' | 'idle';

const SHADE: Record<Shade, string> = { good: 'bg-good', warn: 'bg-warn', bad: 'bg-bad', idle: 'bg-idle' };
const RING: Record<Shade, string> = { good: 'bg-good/20', warn: 'bg-warn/25', bad: 'bg-bad/20', idle: 'bg-idle/20' };

/** A status light. The word always stands beside it. */
export function Light({ shade, beating = false }: { shade: Shade; beating?: boolean }) {
  return (
    <span
      aria-hidden
      data-shade={shade}
      className={`grid size-4 shrink-0 place-items-center rounded-full ${RING[shade]}`}
    >
      <span className={`size-2 rounded-full ${SHADE[shade]} ${beating ? 'animate-beat' : ''}`} />
    </span>
  );
}
