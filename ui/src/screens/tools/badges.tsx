import type { Tool } from '../../api/types';
import { useText } from '../../i18n';
import { Badge } from '../../parts/badge';

/** What a tool says of itself, and what Portway noticed about it. */
export function ToolBadges({ tool }: { tool: Tool }) {
  const t = useText();
  const hints = tool.annotations;
  return (
    <>
      {hints?.readOnlyHint ? <Badge tone="good">{t.tools.readOnly}</Badge> : null}
      {hints?.destructiveHint && !hints.readOnlyHint ? <Badge tone="warn">{t.tools.destructive}</Badge> : null}
      {tool.flags?.includes('invisible_chars') ? (
        <span title={t.tools.hiddenHint}>
          <Badge tone="bad">{t.tools.hidden}</Badge>
        </span>
      ) : null}
    </>
  );
}
