import { useState } from 'react';
import { endOtherSessions, endSession, listSessions } from '../../api/sessions';
import type { ConsoleSession } from '../../api/types';
import { useLanguage, useText } from '../../i18n';
import { Badge } from '../../parts/badge';
import { Button } from '../../parts/button';
import Confirm from '../../parts/confirm';
import { useLoad } from '../../parts/load';
import { Notice } from '../../parts/notice';
import { ago, moment, useNow } from '../../parts/time';
import { Section } from './settings';

/** The first that a browser's description of itself contains is the right one: most name others too. */
const BROWSERS: [string, string][] = [
  ['Edg/', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
];
const SYSTEMS: [string, string][] = [
  ['Android', 'Android'],
  ['iPhone', 'iOS'],
  ['iPad', 'iPadOS'],
  ['Windows', 'Windows'],
  ['Mac OS X', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
];

function nameOf(agent: string, unknown: string): string {
  const [browser, system] = [BROWSERS, SYSTEMS].map((list) => list.find(([mark]) => agent.includes(mark))?.[1]);
  return [browser ?? unknown, system].filter(Boolean).join(', ');
}

/** The session that asks first, then by their last use. */
function sorted(sessions: ConsoleSession[]): ConsoleSession[] {
  return sessions.toSorted(
    (a, b) => Number(b.current) - Number(a.current) || b.last_used_at.localeCompare(a.last_used_at),
  );
}

export function Sessions() {
  const t = useText();
  const { data, error, reload } = useLoad(listSessions, []);
  const [ending, setEnding] = useState<ConsoleSession | 'others'>();
  const others = data?.filter(({ current }) => !current).length ?? 0;
  const end = async () => {
    await (ending === 'others' ? endOtherSessions() : endSession(ending?.id ?? ''));
    reload();
  };
  return (
    <Section title={t.sessions.title} text={t.sessions.intro}>
      {error ? <Notice className="mb-3">{error}</Notice> : null}
      {data?.length === 0 ? <p className="text-base text-ink-3">{t.sessions.none}</p> : null}
      {data?.length ? (
        <ul className="max-h-120 divide-y divide-line overflow-y-auto rounded-xl border border-line bg-panel shadow-card">
          {sorted(data).map((session) => (
            <SessionRow key={session.id} session={session} onEnd={() => setEnding(session)} />
          ))}
        </ul>
      ) : null}
      {others > 0 ? (
        <Button className="mt-3" onClick={() => setEnding('others')}>
          {t.sessions.endOthers}
        </Button>
      ) : null}
      {ending ? (
        <Confirm
          title={
            ending === 'others'
              ? t.sessions.endOthersTitle
              : t.sessions.endTitle(nameOf(ending.agent, t.sessions.unknown))
          }
          text={ending === 'others' ? t.sessions.endOthersText(others) : t.sessions.endText}
          action={t.sessions.end}
          onClose={() => setEnding(undefined)}
          onConfirm={end}
        />
      ) : null}
    </Section>
  );
}

function SessionRow({ session, onEnd }: { session: ConsoleSession; onEnd: () => void }) {
  const t = useText();
  const language = useLanguage();
  const now = useNow(30_000);
  const name = nameOf(session.agent, t.sessions.unknown);
  const facts: [string, string][] = [
    [t.sessions.signedIn, moment(session.created_at, language)],
    [t.entries.lastUsed, ago(new Date(session.last_used_at).getTime(), now, t)],
    [t.entries.expires, moment(session.expires_at, language)],
  ];
  return (
    <li data-session={session.id} className="flex items-start gap-3 px-4 py-3">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-center gap-2 text-base font-medium">
          {name}
          {session.current ? <Badge tone="accent">{t.sessions.current}</Badge> : null}
        </p>
        <p className="mt-0.5 line-clamp-2 font-mono text-xs break-all text-ink-3">{session.agent}</p>
        <dl className="mt-1 flex flex-wrap gap-x-4 gap-y-0.5 text-sm">
          {facts.map(([fact, value]) => (
            <div key={fact} className="flex flex-wrap gap-x-1.5">
              <dt className="text-ink-3">{fact}</dt>
              <dd className="num">{value}</dd>
            </div>
          ))}
        </dl>
      </div>
      <Button small aria-label={t.sessions.endNamed(name)} onClick={onEnd}>
        {t.sessions.end}
      </Button>
    </li>
  );
}
