import { listPrompts, listResources } from '../../../api/servers';
import type { Prompt, Resource, ServerRecord } from '../../../api/types';
import { useText } from '../../../i18n';
import { Badge } from '../../../parts/badge';
import { useLoad } from '../../../parts/load';
import { Notice } from '../../../parts/notice';
import { Nothing } from './overview';

/** Resources or prompts. */
export function Offers({ kind, server }: { kind: 'resources' | 'prompts'; server: ServerRecord }) {
  const t = useText();
  const read = async (signal: AbortSignal): Promise<(Resource | Prompt)[]> =>
    kind === 'resources' ? listResources(server.name, signal) : listPrompts(server.name, signal);
  const { data, error } = useLoad(read, [kind, server.name, server.since, server.status]);
  if (error) {
    return <Notice>{error}</Notice>;
  }
  if (data?.length === 0) {
    return <Nothing text={kind === 'resources' ? t.detail.noResources : t.detail.noPrompts} />;
  }
  return (
    <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line">
      {data?.map((item, index) => <Offer key={index} item={item} />)}
    </ul>
  );
}

function Offer({ item }: { item: Resource & Partial<Prompt> }) {
  const t = useText();
  const address = item.uri ?? item.uriTemplate;
  return (
    <li className="px-4 py-3">
      <div className="flex flex-wrap items-center gap-2">
        <h4 className="text-base font-medium">{item.title ?? item.name}</h4>
        {item.mimeType ? <Badge>{item.mimeType}</Badge> : null}
        {item.uriTemplate ? <Badge tone="accent">{t.detail.template}</Badge> : null}
      </div>
      {address ? <p className="mt-0.5 font-mono text-xs break-all text-ink-2">{address}</p> : null}
      {item.description ? <p className="mt-1 text-sm text-ink-2">{item.description}</p> : null}
      {item.arguments?.length ? (
        <p className="mt-1.5 flex flex-wrap gap-1.5 text-xs text-ink-3">
          {t.detail.arguments}
          {item.arguments.map((argument) => <Badge key={argument.name}>{argument.required ? `${argument.name} *` : argument.name}</Badge>)}
        </p>
      ) : null}
    </li>
  );
}
