import { useState } from 'react';
import type { ServerRecord } from '../../api/types';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Notice } from '../../parts/notice';
import { useKept } from '../../store/kept';
import { useTools, type CatalogTool } from '../../store/tools';
import { ToolBadges } from '../tools/badges';
import { keyOf, toolSubject } from '../../try/subject';
import { TryPanel } from '../../try/try-panel';

const STEP = 20;

/** The tools of a server, each of which can be tried where it stands. */
export default function CardTools({ server }: { server: ServerRecord }) {
  const t = useText();
  const { data, error } = useTools(server.name);
  const [shown, setShown] = useState(STEP);
  if (error !== undefined) {
    return <Notice className="m-3.5 mt-0">{error}</Notice>;
  }
  if (data?.length === 0) {
    const text = server.status === 'connected' ? t.servers.noTools : t.servers.notRunning;
    return <p className="border-t border-line px-5 py-4 text-base text-ink-3">{text}</p>;
  }
  return (
    <div className="border-t border-line">
      <ul className="divide-y divide-line">
        {data?.slice(0, shown).map((tool) => (
          <ToolRow key={tool.name} tool={tool} />
        ))}
      </ul>
      {data && data.length > shown ? (
        <div className="border-t border-line p-2 text-center">
          <Button small kind="ghost" onClick={() => setShown(shown + STEP * 2)}>
            {t.servers.moreTools(Math.min(data.length - shown, STEP * 2))}
          </Button>
        </div>
      ) : null}
    </div>
  );
}

function ToolRow({ tool }: { tool: CatalogTool }) {
  const t = useText();
  const subject = toolSubject(tool);
  const [trying, setTrying] = useKept(`${keyOf(subject)} open`, () => false);
  return (
    <li className="px-3.5 py-2.5 pl-9" data-tool={tool.name}>
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
            <h3 className="font-mono text-sm font-medium break-all">{tool.name}</h3>
            <ToolBadges tool={tool} />
          </div>
          {tool.description ? (
            <p className="mt-0.5 line-clamp-2 text-sm text-pretty text-ink-2">{tool.description}</p>
          ) : null}
        </div>
        <Button
          small
          aria-expanded={trying}
          aria-label={`${trying ? t.common.close : t.tryIt.open}: ${tool.name}`}
          onClick={() => setTrying(!trying)}
        >
          {trying ? t.common.close : t.tryIt.open}
        </Button>
      </div>
      {trying ? (
        <div className="mt-3 rounded-lg border border-line bg-sunken p-3.5">
          <TryPanel subject={subject} />
        </div>
      ) : null}
    </li>
  );
}
