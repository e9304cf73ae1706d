import { Pause, Play } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import { useText } from '../i18n';
import { Button } from '../parts/button';
import { bytesOf } from './binary';
import { Binary } from './content';

/** Played from memory, for the same reason as pictures are drawn. */
export function Sound({ data, type }: { data: string; type: string }) {
  const t = useText();
  const playing = useRef<AudioBufferSourceNode>(undefined);
  const [on, setOn] = useState(false);
  const [failed, setFailed] = useState(false);
  useEffect(() => () => playing.current?.stop(), []);

  const play = async () => {
    if (on) {
      playing.current?.stop();
      return;
    }
    const audio = new AudioContext();
    try {
      const source = audio.createBufferSource();
      source.buffer = await audio.decodeAudioData(bytesOf(data).buffer);
      source.connect(audio.destination);
      source.onended = () => {
        setOn(false);
        void audio.close();
      };
      source.start();
      playing.current = source;
      setOn(true);
    } catch {
      setFailed(true);
      void audio.close();
    }
  };

  return (
    <div
      role="group"
      aria-label={t.tryIt.audio}
      className="flex flex-wrap items-center gap-3 rounded-lg border border-line bg-panel p-3"
    >
      {failed ? null : (
        <Button small onClick={play}>
          {on ? <Pause size={13} aria-hidden /> : <Play size={13} aria-hidden />}
          {on ? t.tryIt.pause : t.tryIt.play}
        </Button>
      )}
      <Binary data={data} type={type} />
    </div>
  );
}
