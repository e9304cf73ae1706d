import type { ReactNode } from 'react';
import { listProcesses, readHistory } from '../../../api/servers';
import type { ServerRecord } from '../../../api/types';
import { useText } from '../../../i18n';
import { Notice } from '../../../parts/notice';
import { useLoad } from '../../../parts/load';
import { duration, useNow } from '../../../parts/time';
import { ProcessTree } from './processes';
import { Timeline } from './timeline';

const PROCESS_POLL = 3_000;

export function Overview({ server }: { server: ServerRecord }) {
  const t = useText();
  const history = useLoad((signal) => readHistory(server.name, signal), [server.name, server.since, server.status]);
  const processes = useLoad(
    (signal) => listProcesses(server.name, signal),
    [server.name, server.pid],
    server.pid ? PROCESS_POLL : undefined,
  );
  return (
    <div className="space-y-6">
      {server.error ? (
        <Notice title={t.detail.errorTitle}>
          <span className="font-mono text-xs">{server.error}</span>
        </Notice>
      ) : null}
      {server.problems?.length ? (
        <Notice title={t.detail.problems}>
          {server.problems.map((problem) => `${problem.field}: ${problem.message}`).join('\n')}
        </Notice>
      ) : null}
      <Facts server={server} />
      {server.instructions ? (
        <Part title={t.detail.instructions}>
          <p className="text-base whitespace-pre-wrap text-ink-2">{server.instructions}</p>
        </Part>
      ) : null}
      <Part title={t.detail.processes}>
        {processes.missing ? (
          <Nothing text={t.detail.unavailable} />
        ) : processes.data?.length ? (
          <ProcessTree processes={processes.data} />
        ) : (
          <Nothing text={t.detail.noProcesses} />
        )}
      </Part>
      <Part title={t.detail.timeline}>
        {history.missing ? (
          <Nothing text={t.detail.unavailable} />
        ) : history.data?.length ? (
          <Timeline items={history.data} />
        ) : (
          <Nothing text={t.detail.noHistory} />
        )}
      </Part>
    </div>
  );
}

function Facts({ server }: { server: ServerRecord }) {
  const t = useText();
  const now = useNow(1_000);
  const info = server.serverInfo;
  const facts: [string, ReactNode][] = [
    [server.status === 'connected' ? t.detail.uptime : t.status[server.status], duration(now - server.since, t)],
    [t.servers.transport, server.transport],
    [t.detail.protocol, server.protocolVersion],
    [t.detail.serverInfo, info ? `${info.title ?? info.name ?? ''} ${info.version ?? ''}` : null],
    [t.detail.pid, server.pid],
    [t.detail.containment, server.containment],
    [t.form.isolation, server.isolation],
    [t.detail.restarts, server.restarts || null],
    [t.detail.source, server.source],
    [t.detail.shadows, server.shadows?.join(', ')],
  ];
  return (
    <dl className="grid grid-cols-[minmax(7rem,auto)_1fr] gap-x-6 gap-y-2 rounded-xl border border-line p-4 text-base">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== '')
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-ink-3">{name}</dt>
            <dd className="num min-w-0 break-words">{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="mb-2.5 text-sm font-semibold">{title}</h3>
      {children}
    </section>
  );
}

export function Nothing({ text }: { text: string }) {
  return <p className="text-base text-ink-3">{text}</p>;
}
