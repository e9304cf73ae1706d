const WIDTH = 300;
const HEIGHT = 64;
const PAD = 4;

interface BarsProps {
  label: string;
  values: number[];
  /** How much of each is bad. */
  bad: number[];
}

export function Bars({ label, values, bad }: BarsProps) {
  const most = Math.max(1, ...values);
  const step = WIDTH / Math.max(1, values.length);
  const high = (value: number) => (value / most) * (HEIGHT - PAD);
  // One path for all bars: an element for each would be hundreds to redraw.
  const bars = (from: (at: number) => number, to: (at: number) => number) =>
    values
      .map((_, at) =>
        to(at) > from(at)
          ? `M${(at * step + step * 0.12).toFixed(1)} ${(HEIGHT - from(at)).toFixed(1)}V${(HEIGHT - to(at)).toFixed(1)}h${(step * 0.76).toFixed(2)}V${(HEIGHT - from(at)).toFixed(1)}z`
          : '',
      )
      .join('');
  const failed = (at: number) => high(bad[at] ?? 0);
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      className="block h-16 w-full"
    >
      <path d={bars(failed, (at) => high(values[at] ?? 0))} className="fill-accent" />
      <path d={bars(() => 0, failed)} className="fill-bad" />
    </svg>
  );
}

interface Line {
  values: (number | null)[];
  className: string;
}

/** Lines over time. Where nothing was measured there is a gap. */
export function Lines({ label, lines, most }: { label: string; lines: Line[]; most?: number }) {
  const top = most ?? Math.max(1, ...lines.flatMap((line) => line.values.filter((value) => value !== null)));
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      className="block h-16 w-full"
    >
      {lines.map((line, at) => (
        <path
          key={at}
          d={path(line.values, top)}
          fill="none"
          stroke="currentColor"
          strokeWidth={1.5}
          strokeLinecap="round"
          vectorEffect="non-scaling-stroke"
          className={line.className}
        />
      ))}
    </svg>
  );
}

function path(values: (number | null)[], top: number): string {
  const step = WIDTH / Math.max(1, values.length - 1);
  let pen = false;
  return values
    .map((value, at) => {
      if (value === null) {
        pen = false;
        return '';
      }
      const y = HEIGHT - PAD - (Math.min(value, top) / top) * (HEIGHT - PAD * 2);
      // A lone point gets a dash, else it would not be seen.
      const mark = `${pen ? 'L' : 'M'}${(at * step).toFixed(1)} ${y.toFixed(1)}${pen ? '' : 'h1.5'}`;
      pen = true;
      return mark;
    })
    .join('');
}
