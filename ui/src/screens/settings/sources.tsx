import { FileJson } from 'lucide-react';
import { listSources } from '../../api/servers';
import type { Problem } from '../../api/types';
import { useText } from '../../i18n';
import { Badge } from '../../parts/badge';
import { useLoad } from '../../parts/load';
import { Notice } from '../../parts/notice';
import { href } from '../../shell/route';
import { useCell } from '../../store/cell';
import { names } from '../../store/servers';
import { fileName } from '../servers/status';
import { Section } from './settings';

/** The configuration files, their servers, and which definitions are overridden. */
export function Sources() {
  const t = useText();
  const known = useCell(names);
  const { data, error } = useLoad(listSources, [known]);
  return (
    <Section title={t.settings.sources} text={t.settings.sourcesText}>
      {error ? <Notice>{error}</Notice> : null}
      {data?.length === 0 ? <p className="text-base text-ink-3">{t.settings.missing}</p> : null}
      <ul className="space-y-2">
        {data?.map((source) => (
          <li key={`${source.path} ${source.kind}`} className="rounded-xl border border-line bg-panel p-4 shadow-card">
            <p className="flex flex-wrap items-center gap-2">
              <FileJson size={15} aria-hidden className="text-ink-3" />
              <span className="min-w-0 font-mono text-xs break-all">{source.path}</span>
              <Badge>{source.kind}</Badge>
            </p>
            {source.error ? <Notice className="mt-3">{source.error}</Notice> : null}
            <Problems problems={source.problems} />
            <ul className="mt-3 flex flex-wrap gap-1.5">
              {source.servers.map((server) => (
                <li key={server.name}>
                  {server.shadowedBy ? (
                    <span title={server.shadowedBy}>
                      <Badge>
                        <span className="line-through">{server.name}</span>&nbsp;
                        {t.settings.shadowed(fileName(server.shadowedBy))}
                      </Badge>
                    </span>
                  ) : (
                    <a href={href('servers', server.name)}>
                      <Badge tone={server.problems.length > 0 ? 'bad' : 'accent'}>{server.name}</Badge>
                    </a>
                  )}
                </li>
              ))}
            </ul>
            {source.servers.length === 0 && source.kind !== 'filters' ? (
              <p className="text-sm text-ink-3">{t.settings.noServers}</p>
            ) : null}
          </li>
        ))}
      </ul>
    </Section>
  );
}

export function Problems({ problems }: { problems: Problem[] }) {
  const t = useText();
  if (problems.length === 0) {
    return null;
  }
  return (
    <Notice className="mt-3" title={t.settings.problems}>
      {problems
        .map((problem) => {
          const place = [problem.server, problem.field].filter(Boolean).join('.');
          return `${place}${problem.line === undefined ? '' : ` (${t.settings.line(problem.line)})`}: ${problem.message}`;
        })
        .join('\n')}
    </Notice>
  );
}
