// Times, shares and sizes as people read them; dictionaries.
import assert from 'node:assert/strict';
import test from 'node:test';
import en from '../../src/i18n/en';
import zhCN from '../../src/i18n/zh-CN';
import zhTW from '../../src/i18n/zh-TW';
import { ago, bytes, clock, duration, moment, percent } from '../../src/parts/time';

const LANGUAGES = ['en', 'zh-CN', 'zh-TW'];

test('h2 a duration has its two largest units', () => {
  for (const [ms, text] of [
    [-5, '0 s'],
    [1_499, '1 s'],
    [59_999, '60 s'],
    [60_000, '1 min'],
    [3_599_000, '59 min'],
    [3_660_000, '1 h 1 min'],
    [90_000_000, '1 d 1 h'],
  ] as const) {
    assert.equal(duration(ms, en), text);
  }
  assert.equal(ago(0, 4_999, en), 'just now');
  assert.equal(ago(0, 60_000, en), '1 min ago');
});

test('h7 midnight is 00 and a share has the sign of its language', () => {
  const at = new Date(2026, 0, 2, 0, 15, 0).getTime();
  for (const language of LANGUAGES) {
    assert.equal(clock(at, language), '00:15:00', language);
    assert.match(moment(at, language), /2026.*00:15:00/, language);
    assert.equal(percent(0.2, language), '20%', language);
    assert.equal(percent(0.1234, language), '12.3%', language);
  }
});

test('h2 sizes have few digits', () => {
  assert.deepEqual([0, 1023, 1024, 10_240, 5_000_000, 3e12].map(bytes), [
    '0 B',
    '1023 B',
    '1.0 kB',
    '10 kB',
    '4.8 MB',
    '2794 GB',
  ]);
});

test('h1 a Chinese text has no characters or words of the other', () => {
  // Functions are read as they are written: their words stand in them.
  const text = (value: unknown): string =>
    typeof value === 'object' && value !== null ? Object.values(value).map(text).join('\n') : String(value);
  assert.doesNotMatch(text(zhCN), /[伺務檔儲讀寫錄點設權]|入口|试用/);
  assert.doesNotMatch(text(zhTW), /[务档储读写录点设权]|服務|入口|日誌|紀錄|列印|試用/);
});
