/** Typed text that is not (yet) a value. */
export class BadText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}
