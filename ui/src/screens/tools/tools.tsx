import { Wrench } from 'lucide-react';
import { useDeferredValue, useMemo } from 'react';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Empty } from '../../parts/empty';
import { Search } from '../../parts/search';
import { go, useRoute } from '../../shell/route';
import { useCell } from '../../store/cell';
import { useKept } from '../../store/kept';
import { loaded } from '../../store/live';
import { useCatalog, type CatalogTool } from '../../store/tools';
import { ToolList } from './list';
import { ToolView } from './view';

function search(tools: CatalogTool[], query: string, server: string): CatalogTool[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  return tools.filter(
    (tool) => (server === '' || tool.server === server) && words.every((word) => tool.haystack.includes(word)),
  );
}

/** Every tool there is, and a place to try it. */
export default function Tools() {
  const t = useText();
  const { rest } = useRoute();
  const known = useCell(loaded);
  const { tools, complete } = useCatalog();
  const [query, setQuery] = useKept('tools search', () => '');
  const [server, setServer] = useKept('tools server', () => '');
  const wanted = useDeferredValue(query);
  const found = useMemo(() => search(tools, wanted, server), [tools, wanted, server]);
  const servers = useMemo(() => [...new Set(tools.map((tool) => tool.server))], [tools]);
  const chosen = tools.find((tool) => tool.server === rest[0] && tool.name === rest[1]);

  if (known && complete && tools.length === 0) {
    return (
      <>
        <h1 className="mb-5 text-xl font-semibold tracking-tight">{t.tools.title}</h1>
        <Empty icon={<Wrench size={22} />} title={t.tools.emptyTitle} text={t.tools.emptyText}>
          <Button kind="solid" onClick={() => go('servers')}>
            {t.tools.toServers}
          </Button>
        </Empty>
      </>
    );
  }
  return (
    <div className="grid gap-6 lg:grid-cols-[minmax(0,22rem)_minmax(0,1fr)]">
      <section aria-label={t.tools.list} className={chosen ? 'hidden lg:block' : ''}>
        <div className="mb-4 flex items-baseline justify-between gap-3">
          <h1 className="text-xl font-semibold tracking-tight">{t.tools.title}</h1>
          <p role="status" className="num text-sm text-ink-3">
            {found.length === tools.length ? t.tools.total(tools.length) : t.tools.of(found.length, tools.length)}
          </p>
        </div>
        <div className="mb-3 flex gap-2">
          <Search main label={t.tools.search} value={query} onChange={setQuery} />
          <select
            aria-label={t.activity.server}
            value={server}
            onChange={(event) => setServer(event.target.value)}
            className="field h-8.5 w-32 shrink-0"
          >
            <option value="">{t.tools.anyServer}</option>
            {servers.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </div>
        {complete && found.length === 0 ? (
          <p className="py-8 text-center text-base text-ink-2">{t.tools.nothing}</p>
        ) : (
          <ToolList tools={found} chosen={chosen} />
        )}
      </section>
      <section aria-label={t.tryIt.title} className={chosen ? 'min-w-0' : 'hidden lg:block'}>
        {chosen ? (
          <ToolView key={`${chosen.server} ${chosen.name}`} tool={chosen} />
        ) : (
          <div className="sticky top-32">
            <Empty icon={<Wrench size={22} />} title={t.tools.pick} text={t.tools.pickText} />
          </div>
        )}
      </section>
    </div>
  );
}
