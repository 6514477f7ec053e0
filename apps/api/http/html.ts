export function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}

/** One line of Markdown with `code`, as HTML. */
export function inline(text: string): string {
  return escaped(text).replaceAll(/`([^`]*)`/g, '<code>$1</code>')
}
