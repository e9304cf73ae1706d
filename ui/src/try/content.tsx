import { Download, FileText, Link } from 'lucide-react';
import type { Content } from '../api/mcp';
import { useText } from '../i18n';
import { Button } from '../parts/button';
import { Code } from '../parts/code';
import { bytes } from '../parts/time';
import { bytesOf, save } from './binary';
import { Picture } from './picture';
import { Sound } from './sound';

/** One block of a result. Whatever a server sends is text, never markup. */
export function ContentBlock({ block }: { block: Content }) {
  const t = useText();
  switch (block.type) {
    case 'text':
      return <Code text={block.text ?? ''} className="max-h-128 overflow-auto" />;
    case 'image':
      return <Picture data={block.data ?? ''} type={block.mimeType ?? 'image/png'} />;
    case 'audio':
      return <Sound data={block.data ?? ''} type={block.mimeType ?? 'audio/wav'} />;
    case 'resource_link':
      return (
        <div className="flex items-start gap-2.5 rounded-lg border border-line bg-panel px-3 py-2.5 text-sm">
          <Link size={15} aria-hidden className="mt-0.5 shrink-0 text-ink-3" />
          <div className="min-w-0">
            <p className="font-medium">{block.title ?? block.name ?? t.tryIt.link}</p>
            <p className="font-mono text-xs break-all text-ink-2">{block.uri}</p>
            {block.description ? <p className="mt-0.5 text-xs text-ink-3">{block.description}</p> : null}
          </div>
        </div>
      );
    case 'resource':
      return <Embedded resource={block.resource} />;
    default:
      return <Code text={JSON.stringify(block, null, 2)} />;
  }
}

function Embedded({ resource }: { resource: Content['resource'] }) {
  const t = useText();
  if (!resource) {
    return null;
  }
  const type = resource.mimeType ?? 'application/octet-stream';
  return (
    <div className="rounded-lg border border-line bg-panel p-3">
      <p className="mb-2 flex items-center gap-2 font-mono text-xs break-all text-ink-2">
        <FileText size={14} aria-hidden className="shrink-0" />
        {resource.uri}
      </p>
      {resource.text === undefined ? null : <Code text={resource.text} className="max-h-96 overflow-auto" />}
      {resource.blob === undefined ? null : type.startsWith('image/') ? (
        <Picture data={resource.blob} type={type} />
      ) : (
        <Binary data={resource.blob} type={type} />
      )}
      {resource.text === undefined && resource.blob === undefined ? (
        <p className="text-sm text-ink-3">{t.tryIt.empty}</p>
      ) : null}
    </div>
  );
}

export function Binary({ data, type }: { data: string; type: string }) {
  const t = useText();
  const content = bytesOf(data);
  return (
    <div className="flex flex-wrap items-center gap-3 text-sm text-ink-2">
      {t.tryIt.binary(type, bytes(content.length))}
      <Button small onClick={() => save(content, type)}>
        <Download size={13} aria-hidden />
        {t.tryIt.download}
      </Button>
    </div>
  );
}
