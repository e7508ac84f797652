// The order of rows: keys as the server gives them, [what it is sorted by, place in the log].

const parts = (a, b) => {
  if (a === b) return 0;
  if (Array.isArray(a) && Array.isArray(b)) {
    for (let index = 0; index < Math.min(a.length, b.length); index += 1) {
      const found = parts(a[index], b[index]);
      if (found) return found;
    }
    return a.length - b.length;
  }
  return a < b ? -1 : 1;
};

/** Below 0 where a row with key a stands above one with key b; rows without a value come last. */
export const compareKeys = (a, b, descending) => {
  const [first, place] = a;
  const [second, other] = b;
  if (first === null || second === null) {
    if (first !== second) return first === null ? 1 : -1;
    return place - other;
  }
  const found = parts(first, second) || place - other;
  return descending ? -found : found;
};
