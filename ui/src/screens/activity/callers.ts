import { useMemo } from 'react';
import { listEntries } from '../../api/entries';
import type { Call } from '../../api/types';
import { useText } from '../../i18n';
import { useLoad } from '../../parts/load';
import { useCell } from '../../store/cell';
import { entriesRevision } from '../../store/live';

/** The name of a call's caller: the entry's name, or the principal's if there is no entry. */
export function useCallers(): (call: Call) => string {
  const t = useText();
  const revision = useCell(entriesRevision);
  const { data } = useLoad(listEntries, [revision]);
  return useMemo(() => {
    const names = new Map(data?.map((entry) => [entry.id, entry.name]));
    return (call) => {
      if (call.entry === null) {
        return call.principal && call.principal !== 'admin' ? call.principal : t.activity.admin;
      }
      return names.get(call.entry) ?? `#${call.entry}`;
    };
  }, [data, t]);
}
