import { useEffect, useRef, useState } from 'react';
import { useText } from '../i18n';
import { bytesOf } from './binary';
import { Binary } from './content';

// The page's policy lets no image come from elsewhere, nor from `data:`.
// Drawing the pixels ourselves needs no exception, and runs nothing that a
// picture might carry.
export function Picture({ data, type }: { data: string; type: string }) {
  const t = useText();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let wanted = true;
    createImageBitmap(new Blob([bytesOf(data)], { type })).then(
      (bitmap) => {
        const target = canvas.current;
        if (wanted && target) {
          target.width = bitmap.width;
          target.height = bitmap.height;
          target.getContext('2d')?.drawImage(bitmap, 0, 0);
        }
      },
      () => wanted && setFailed(true),
    );
    return () => {
      wanted = false;
    };
  }, [data, type]);
  return (
    <figure className="rounded-lg border border-line bg-panel p-3">
      {failed ? null : (
        <canvas ref={canvas} role="img" aria-label={t.tryIt.image} className="mb-2 max-h-96 max-w-full rounded" />
      )}
      <figcaption>
        <Binary data={data} type={type} />
      </figcaption>
    </figure>
  );
}
