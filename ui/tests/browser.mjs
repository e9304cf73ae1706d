import { chromium } from 'playwright-core';

export async function openBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
}

/**
 * A page that is signed in. It remembers what must never happen: a complaint
 * of the page's policy, an exception, a request that leaves the origin.
 */
export async function openPage(browser, front, portway, options = {}) {
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
  const faults = [];
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`));
  page.on('console', (message) => {
    if (/Content Security Policy|Warning:|Minified React/.test(message.text())) {
      faults.push(message.text());
    }
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol.startsWith('http') && origin !== front.url) {
      faults.push(`leaves the origin: ${request.url()}`);
    }
  });
  await page.goto(signedIn ? `${front.url}/?token=${portway.token}` : front.url);
  if (path !== '#/servers') {
    await page.goto(`${front.url}/${path}`);
  }
  return { page, faults, context };
}
