/** Text as it stands in HTML. */
export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

/** A line with `code` in it. */
export function inline(text: string): string {
  return escaped(text).replaceAll(/`([^`]*)`/g, '<code>$1</code>')
}

/** Paragraphs parted by empty lines. */
export function paragraphs(text: string): string {
  return text
    .split('\n\n')
    .map((each) => `<p>${inline(each)}</p>`)
    .join('\n')
}
