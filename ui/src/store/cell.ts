import { useSyncExternalStore } from 'react';

type Listener = () => void;

/** A value that components can watch. */
export class Cell<T> {
  #value: T;
  readonly #listeners = new Set<Listener>();

  constructor(value: T) {
    this.#value = value;
  }

  get = (): T => this.#value;

  set(value: T): void {
    if (!Object.is(value, this.#value)) {
      this.#value = value;
      this.#listeners.forEach((listener) => listener());
    }
  }

  subscribe = (listener: Listener): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

export function useCell<T>(cell: Cell<T>): T {
  return useSyncExternalStore(cell.subscribe, cell.get);
}
