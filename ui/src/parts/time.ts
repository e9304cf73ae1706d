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

/** The clock, in steps; only while somebody looks. */
export function useNow(step: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), step);
    return () => window.clearInterval(timer);
  }, [step]);
  return now;
}

export function clock(at: number, language: string): string {
  return new Date(at).toLocaleTimeString(language, { hour12: false });
}

export function moment(at: number | string, language: string): string {
  return new Date(at).toLocaleString(language, { dateStyle: 'medium', timeStyle: 'medium', hour12: false });
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
