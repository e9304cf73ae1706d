// A path is one browser test: what a person does, and what the page must show.
import type { Browser } from 'playwright-core';
import type { OpenPage, PageOptions } from './browser.ts';
import type { Portway } from './portway.ts';
import type { Proxy } from './proxy.ts';

export interface PathContext {
  /** Opens a page. `done` closes it, and fails if it had faults. */
  open: (options?: PageOptions) => Promise<OpenPage & { done: () => Promise<void> }>;
  proxy: Proxy;
  portway: Portway;
  browser: Browser;
  /** The programs under test: a Portway, and the test server of the repository. */
  binary: string;
  fixture: string;
}

/** A text as result is a note for the report, such as a measured time. */
export type Paths = Record<string, (context: PathContext) => Promise<unknown>>;
