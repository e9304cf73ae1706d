/** Which cards are unfolded; outlives a card that was scrolled away. */
export const unfolded = new Set<string>();

export function setUnfolded(name: string, open: boolean): void {
  if (open) {
    unfolded.add(name);
  } else {
    unfolded.delete(name);
  }
}
