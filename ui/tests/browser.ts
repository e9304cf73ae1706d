import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import type { Portway } from './portway.ts';
import type { Proxy } from './proxy.ts';

export interface PageOptions {
  language?: string;
  theme?: 'light' | 'dark';
  width?: number;
  height?: number;
  path?: string;
  signedIn?: boolean;
  /** Runs in the page before its own scripts. */
  init?: () => void;
}

export interface OpenPage {
  page: Page;
  /** Errors that fail any test: a violation of the page's policy, an exception, a request to another origin. */
  faults: string[];
  context: BrowserContext;
}

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
}

/** A page in a browser context of its own, signed in unless `signedIn` is false. */
export async function openPage(
  browser: Browser,
  proxy: Proxy,
  portway: Portway,
  options: PageOptions = {},
): Promise<OpenPage> {
  const { language = 'en', theme, width = 1280, height = 860, path = '#/servers', signedIn = true, init } = options;
  const context = await browser.newContext({
    viewport: { width, height },
    locale: language,
    reducedMotion: 'reduce',
    ...(theme ? { colorScheme: theme } : {}),
  });
  if (init) {
    await context.addInitScript(init);
  }
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
  page.on('console', (message) => {
    if (/Content Security Policy|Warning:|Minified React/.test(message.text())) {
      faults.push(message.text());
    }
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol.startsWith('http') && origin !== proxy.url) {
      faults.push(`request to another origin: ${request.url()}`);
    }
  });
  await page.goto(signedIn ? `${proxy.url}/?token=${portway.token}` : proxy.url);
  if (path !== '#/servers') {
    await page.goto(`${proxy.url}/${path}`);
  }
  return { page, faults, context };
}
