import { useState, type ReactNode } from 'react';
import { listPrompts, listResources } from '../../../api/servers';
import type { ServerRecord } from '../../../api/types';
import { useText } from '../../../i18n';
import { Badge } from '../../../parts/badge';
import { Button } from '../../../parts/button';
import { useLoad } from '../../../parts/load';
import { Notice } from '../../../parts/notice';
import { useKept } from '../../../store/kept';
import { keyOf, promptSubject, resourceSubject, uriSubject, type Subject } from '../../../try/subject';
import { trialOf } from '../../../try/trial';
import { TryPanel } from '../../../try/try-panel';
import { Nothing } from './overview';

const STEP = 50;

interface Offer {
  subject: Subject;
  title: string;
  /** The URI, or its template. */
  address?: string | undefined;
  description?: string | undefined;
  badges?: ReactNode;
}

/** The resources of a server and its resource templates, each of which can be read where it stands. */
export function Resources({ server }: { server: ServerRecord }) {
  const t = useText();
  const { data, error } = useLoad(
    (signal) => listResources(server.name, signal),
    [server.name, server.since, server.status],
  );
  const offers = data?.map((resource): Offer => ({
    subject: resourceSubject(server.name, resource),
    title: resource.title ?? resource.name ?? '',
    address: resource.uri ?? resource.uriTemplate,
    description: resource.description,
    badges: (
      <>
        {resource.mimeType ? <Badge>{resource.mimeType}</Badge> : null}
        {resource.uriTemplate ? <Badge tone="accent">{t.detail.template}</Badge> : null}
      </>
    ),
  }));
  const byUri: Offer = {
    subject: uriSubject(server.name, t.detail.uri),
    title: t.detail.otherResource,
    description: t.detail.otherResourceHint,
  };
  return (
    <Offers
      offers={offers && server.status === 'connected' ? [...offers, byUri] : offers}
      error={error}
      nothing={t.detail.noResources}
    />
  );
}

/** The prompts of a server, each of which can be got where it stands. */
export function Prompts({ server }: { server: ServerRecord }) {
  const t = useText();
  const { data, error } = useLoad(
    (signal) => listPrompts(server.name, signal),
    [server.name, server.since, server.status],
  );
  const offers = data?.map((prompt): Offer => ({
    subject: promptSubject(server.name, prompt),
    title: prompt.title ?? prompt.name,
    description: prompt.description,
    badges: prompt.arguments?.map((argument) => (
      <Badge key={argument.name}>{argument.required ? `${argument.name} *` : argument.name}</Badge>
    )),
  }));
  return <Offers offers={offers} error={error} nothing={t.detail.noPrompts} />;
}

function Offers({
  offers,
  error,
  nothing,
}: {
  offers: Offer[] | undefined;
  error: string | undefined;
  nothing: string;
}) {
  const t = useText();
  const [shown, setShown] = useState(STEP);
  if (error) {
    return <Notice>{error}</Notice>;
  }
  if (offers?.length === 0) {
    return <Nothing text={nothing} />;
  }
  return (
    <>
      <ul className="divide-y divide-line overflow-hidden rounded-xl border border-line">
        {offers?.slice(0, shown).map((offer) => (
          <OfferRow key={keyOf(offer.subject)} offer={offer} />
        ))}
      </ul>
      {offers && offers.length > shown ? (
        <div className="p-2 text-center">
          <Button small kind="ghost" onClick={() => setShown(shown + STEP)}>
            {t.servers.moreTools(Math.min(offers.length - shown, STEP))}
          </Button>
        </div>
      ) : null}
    </>
  );
}

function OfferRow({ offer: { subject, title, address, description, badges } }: { offer: Offer }) {
  const t = useText();
  const [open, setOpen] = useKept(`${keyOf(subject)} open`, () => false);
  const word = open ? t.common.close : subject.kind === 'resource' ? t.tryIt.read : t.tryIt.get;
  const toggle = () => {
    const trial = trialOf(subject);
    if (!open && !subject.schema && !trial.busy) {
      trial.run(subject.request({}));
    }
    setOpen(!open);
  };
  return (
    <li className="px-4 py-3" data-offer={subject.name}>
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <div className="flex flex-wrap items-center gap-2">
            <h4 className="text-base font-medium break-words">{title}</h4>
            {badges}
          </div>
          {address ? <p className="mt-0.5 font-mono text-xs break-all text-ink-2">{address}</p> : null}
          {description ? <p className="mt-1 text-sm text-ink-2">{description}</p> : null}
        </div>
        <Button small aria-expanded={open} aria-label={`${word}: ${title}`} onClick={toggle}>
          {word}
        </Button>
      </div>
      {open ? (
        <div className="mt-3 rounded-lg border border-line bg-sunken p-3.5">
          <TryPanel subject={subject} />
        </div>
      ) : null}
    </li>
  );
}
