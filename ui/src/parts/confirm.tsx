import { useState } from 'react';
import { explained, useText } from '../i18n';
import { Button } from './button';
import { Dialog } from './dialog';
import { Notice } from './notice';

interface Props {
  title: string;
  text: string;
  action: string;
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

/** Asks before something that cannot be taken back. */
export default function Confirm({ title, text, action, onConfirm, onClose }: Props) {
  const t = useText();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string>();

  const confirm = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      onClose();
    } catch (failure) {
      setError(explained(failure));
      setBusy(false);
    }
  };

  return (
    <Dialog
      onClose={onClose}
      title={title}
      footer={() => (
        <>
          <Button onClick={onClose} autoFocus>
            {t.common.cancel}
          </Button>
          <Button kind="danger" onClick={confirm} busy={busy}>
            {action}
          </Button>
        </>
      )}
    >
      <p className="text-base text-ink-2">{text}</p>
      {error ? <Notice className="mt-3">{error}</Notice> : null}
    </Dialog>
  );
}
