import { useEffect, useState } from 'react';
import type { Dictionary } from '../i18n/en';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function duration(ms: number, t: Dictionary): string {
  if (ms < MINUTE) {
    return t.time.seconds(Math.max(0, Math.round(ms / 1000)));
  }
  if (ms < HOUR) {
    return t.time.minutes(Math.floor(ms / MINUTE));
  }
  if (ms < DAY) {
    return `${t.time.hours(Math.floor(ms / HOUR))} ${t.time.minutes(Math.floor((ms % HOUR) / MINUTE))}`;
  }
  return `${t.time.days(Math.floor(ms / DAY))} ${t.time.hours(Math.floor((ms % DAY) / HOUR))}`;
}

export function ago(at: number, now: number, t: Dictionary): string {
  return now - at < 5_000 ? t.time.now : t.time.ago(duration(now - at, t));
}

/** The current time, updated every `step` milliseconds while the component is shown and not `still`. */
export function useNow(step: number, still = false): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (still) {
      return undefined;
    }
    const timer = window.setInterval(() => setNow(Date.now()), step);
    return () => window.clearInterval(timer);
  }, [step, still]);
  return now;
}

// Making a formatter costs far more than using it. `hour12: false` would write
// midnight as 24 in some languages.
const clocks = new Map<string, Intl.DateTimeFormat>();
const moments = new Map<string, Intl.DateTimeFormat>();

function formatter(
  known: Map<string, Intl.DateTimeFormat>,
  language: string,
  options: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  const found = known.get(language) ?? new Intl.DateTimeFormat(language, { ...options, hourCycle: 'h23' });
  known.set(language, found);
  return found;
}

export function clock(at: number, language: string): string {
  return formatter(clocks, language, { timeStyle: 'medium' }).format(at);
}

export function moment(at: number | string, language: string): string {
  return formatter(moments, language, { dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(at));
}

/** A share of one, such as 20 % for 0.2, as the language writes it. */
export function percent(share: number, language: string): string {
  return new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 1 }).format(share);
}

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB'];
  let value = n;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit] ?? ''}`;
}
