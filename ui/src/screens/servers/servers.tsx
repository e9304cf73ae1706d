import { Plus, SearchX, Server } from 'lucide-react';
import { useDeferredValue } from 'react';
import { useText } from '../../i18n';
import { Button } from '../../parts/button';
import { Empty } from '../../parts/empty';
import { Notice } from '../../parts/notice';
import { part } from '../../parts/part';
import { Search } from '../../parts/search';
import { Segmented } from '../../parts/segmented';
import { go, useRoute } from '../../shell/route';
import { useCell } from '../../store/cell';
import { useKept } from '../../store/kept';
import { link, loaded } from '../../store/live';
import { counts } from '../../store/servers';
import { overlay } from '../../store/shell';
import { ServerList } from './list';
import { Skeleton } from './skeleton';
import { useVisible, type Filter } from './visible';

const Detail = part(() => import('./detail/detail'));

export function Servers() {
  const t = useText();
  const { rest } = useRoute();
  const known = useCell(loaded);
  const state = useCell(link);
  const [query, setQuery] = useKept('servers search', () => '');
  const [filter, setFilter] = useKept<Filter>('servers filter', () => 'all');
  const visible = useVisible(useDeferredValue(query), filter);
  const [name, tab] = rest;
  return (
    <>
      <Bar query={query} setQuery={setQuery} filter={filter} setFilter={setFilter} />
      {state === 'down' ? <Notice className="mb-4">{t.common.unreachable}</Notice> : null}
      {known ? (
        <Body
          visible={visible}
          clear={() => {
            setQuery('');
            setFilter('all');
          }}
        />
      ) : (
        <Skeleton />
      )}
      {name ? (
        <Detail
          name={name}
          tab={tab ?? 'overview'}
          onTab={(next) => go('servers', name, next)}
          onClose={() => go('servers')}
        />
      ) : null}
    </>
  );
}

interface BarProps {
  query: string;
  setQuery: (query: string) => void;
  filter: Filter;
  setFilter: (filter: Filter) => void;
}

function Bar({ query, setQuery, filter, setFilter }: BarProps) {
  const t = useText();
  const n = useCell(counts);
  const filters: Filter[] = ['all', 'connected', 'connecting', 'error', 'disconnected'];
  const word = (value: Filter) => (value === 'all' ? t.common.all : t.status[value]);
  return (
    <div className="mb-5">
      <div className="mb-4 flex flex-wrap items-center gap-3">
        <h1 className="flex-1 text-xl font-semibold tracking-tight whitespace-nowrap">{t.servers.title}</h1>
        <Button kind="solid" onClick={() => overlay.set({ kind: 'add' })}>
          <Plus size={15} aria-hidden />
          {t.servers.add}
        </Button>
      </div>
      {n.all === 0 ? null : (
        <div className="flex flex-wrap items-center gap-2">
          <div className="flex min-w-52 flex-1">
            <Search main label={t.servers.search} value={query} onChange={setQuery} />
          </div>
          <Segmented
            label={t.servers.filter}
            value={filter}
            onChange={setFilter}
            options={filters
              .filter((value) => value === 'all' || value === filter || n[value] > 0)
              .map((value) => ({
                value,
                label: (
                  <>
                    {word(value)}
                    <span className="num text-2xs text-ink-3">{n[value]}</span>
                  </>
                ),
              }))}
          />
        </div>
      )}
    </div>
  );
}

function Body({ visible, clear }: { visible: readonly string[]; clear: () => void }) {
  const t = useText();
  const { all } = useCell(counts);
  if (all === 0) {
    return (
      <Empty icon={<Server size={22} />} title={t.servers.emptyTitle} text={t.servers.emptyText}>
        <Button kind="solid" onClick={() => overlay.set({ kind: 'add' })}>
          <Plus size={15} aria-hidden />
          {t.servers.add}
        </Button>
      </Empty>
    );
  }
  if (visible.length === 0) {
    return (
      <Empty icon={<SearchX size={22} />} title={t.servers.nothingTitle} text={t.servers.nothingText}>
        <Button onClick={clear}>{t.servers.clear}</Button>
      </Empty>
    );
  }
  return <ServerList names={visible} />;
}
