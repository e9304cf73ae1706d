import { useState } from 'react';
import { ApiFailure, signIn } from '../api/http';
import icon from '../icon.svg';
import { explained, useText } from '../i18n';
import { Button } from '../parts/button';
import { Field } from '../parts/field';
import { session } from '../store/shell';

export function SignIn() {
  const t = useText();
  const [token, setToken] = useState('');
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);

  const submit = async (event: React.SyntheticEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(token.trim());
      session.set('good');
    } catch (failure) {
      setError(failure instanceof ApiFailure && failure.status === 401 ? t.signIn.wrong : explained(failure));
      setBusy(false);
    }
  };

  return (
    <main className="grid-paper grid min-h-dvh place-items-center p-4">
      <form
        onSubmit={submit}
        className="w-full max-w-sm animate-rise rounded-2xl border border-line bg-panel p-7 shadow-pop"
      >
        <img src={icon} alt="" className="mb-5 size-10" />
        <h1 className="text-xl font-semibold tracking-tight">{t.signIn.title}</h1>
        <p className="mt-1 mb-5 text-base text-ink-2">{t.signIn.hint}</p>
        <Field label={t.signIn.token} hint={t.signIn.where} error={error}>
          {(wired) => (
            <input
              {...wired}
              type="password"
              autoComplete="current-password"
              autoFocus
              required
              value={token}
              onChange={(event) => {
                setToken(event.target.value);
                setError(undefined);
              }}
              className="field h-9 font-mono"
            />
          )}
        </Field>
        <Button type="submit" kind="solid" busy={busy} disabled={token.trim() === ''} className="mt-4 w-full">
          {t.signIn.submit}
        </Button>
      </form>
    </main>
  );
}
