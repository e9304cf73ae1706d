import { ArrowLeft } from 'lucide-react';
import { useText } from '../../i18n';
import { Badge } from '../../parts/badge';
import { href } from '../../shell/route';
import type { CatalogTool } from '../../store/tools';
import { toolSubject } from '../../try/subject';
import { TryPanel } from '../../try/try-panel';
import { ToolBadges } from './badges';

export function ToolView({ tool }: { tool: CatalogTool }) {
  const t = useText();
  return (
    <div>
      <a
        href={href('tools')}
        className="mb-3 inline-flex items-center gap-1.5 text-sm text-ink-2 hover:text-ink lg:hidden"
      >
        <ArrowLeft size={14} aria-hidden />
        {t.tools.backToList}
      </a>
      <header className="mb-4">
        <div className="flex flex-wrap items-center gap-2">
          <h2 className="font-mono text-lg font-semibold break-all">{tool.name}</h2>
          <a href={href('servers', tool.server)} className="rounded hover:opacity-80">
            <Badge tone="accent">{tool.server}</Badge>
          </a>
          <ToolBadges tool={tool} />
        </div>
        {tool.description ? (
          <p className="mt-1.5 max-w-prose text-base whitespace-pre-wrap text-ink-2">{tool.description}</p>
        ) : null}
      </header>
      <div className="rounded-xl border border-line bg-panel p-4 shadow-card sm:p-5">
        <TryPanel subject={toolSubject(tool)} />
      </div>
    </div>
  );
}
