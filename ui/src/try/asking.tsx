import { ExternalLink } from 'lucide-react';
import { useState } from 'react';
import type { InputRequest, InputResponse } from '../api/mcp';
import { useText } from '../i18n';
import { Button } from '../parts/button';
import { Dialog } from '../parts/dialog';
import { forget, useKept } from '../store/kept';
import { SchemaForm } from './schema-form';
import { check, initial, type Values } from './values';

interface Props {
  /** Where the answers are kept until they are sent. */
  place: string;
  server: string;
  requests: Record<string, InputRequest>;
  onAnswer: (answers: Record<string, InputResponse>) => void;
  onCancel: () => void;
}

/** What a server wants to know in the middle of a call. */
export function Asking({ place, server, requests, onAnswer, onCancel }: Props) {
  const t = useText();
  const list = Object.entries(requests);
  const blank = () => Object.fromEntries(list.map(([key, request]) => [key, initial(request.params.requestedSchema)]));
  const [values, setValues] = useKept<Record<string, Values>>(place, blank);
  const done = (act: () => void) => {
    forget(place);
    act();
  };
  const [problems, setProblems] = useState<Record<string, Record<string, string>>>({});

  const accept = () => {
    const found = Object.fromEntries(
      list.map(([key, request]) => [key, check(request.params.requestedSchema, values[key] ?? {}, t)]),
    );
    setProblems(found);
    if (Object.values(found).every((one) => Object.keys(one).length === 0)) {
      done(() =>
        onAnswer(Object.fromEntries(list.map(([key, request]) => [key, accepted(request, values[key] ?? {})]))),
      );
    }
  };
  const decline = () =>
    done(() => onAnswer(Object.fromEntries(list.map(([key]) => [key, { action: 'decline' as const }]))));

  return (
    <Dialog
      onClose={() => done(onCancel)}
      loses={t.tryIt.loses}
      title={`${t.tryIt.asks}: ${server}`}
      footer={() => (
        <>
          <Button onClick={decline}>{t.tryIt.decline}</Button>
          <Button kind="solid" onClick={accept}>
            {t.tryIt.accept}
          </Button>
        </>
      )}
    >
      <div className="space-y-5">
        {list.map(([key, request]) => (
          <section key={key}>
            <p className="mb-3 text-base whitespace-pre-wrap">{request.params.message}</p>
            {request.params.url ? (
              <Visit url={request.params.url} />
            ) : (
              <SchemaForm
                schema={request.params.requestedSchema}
                values={values[key] ?? {}}
                onChange={(next) => setValues({ ...values, [key]: next })}
                problems={problems[key] ?? {}}
              />
            )}
          </section>
        ))}
      </div>
    </Dialog>
  );
}

function accepted(request: InputRequest, values: Values): InputResponse {
  return request.params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: values };
}

function Visit({ url }: { url: string }) {
  const t = useText();
  // A server may ask for anything; only web pages are opened.
  const safe = /^https?:\/\//i.test(url);
  return (
    <div className="rounded-lg border border-line bg-sunken p-3">
      <p className="mb-2 text-sm text-ink-2">{t.tryIt.urlHint}</p>
      <p className="mb-3 font-mono text-xs break-all">{url}</p>
      {safe ? (
        <a
          href={url}
          target="_blank"
          rel="noreferrer noopener"
          className="inline-flex items-center gap-1.5 text-sm font-medium text-accent underline underline-offset-2"
        >
          <ExternalLink size={13} aria-hidden />
          {t.tryIt.openUrl}
        </a>
      ) : null}
    </div>
  );
}
