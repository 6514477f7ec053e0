const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text of a cell or a line. It may come from a sender, so it must not control the terminal. */
export function oneLine(text: string): string {
  return harmless(text.replaceAll(/\s+/g, ' '))
}

/** The same for text with several lines. Control characters and bidirectional controls are replaced. */
export function harmless(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\u2028\u2029\p{Bidi_Control}]/gu, '\ufffd')
}

/** Text of an HTML or XML element or attribute. */
export function escapeMarkup(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
}

/** A table with column names; each column is as wide as its widest cell. */
export function table(names: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [names.map((name) => name.toUpperCase()), ...rows.map((row) => row.map(oneLine))]
  // Not `Math.max(...)`: a list may have more rows than a function can have arguments.
  const widths = names.map((_, column) =>
    lines.reduce((widest, line) => Math.max(widest, line[column]?.length ?? 0), 0),
  )
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** One fact per line. Null facts are left out. */
export function facts(pairs: Readonly<Record<string, string | number | boolean | null | undefined>>): string {
  const known = Object.entries(pairs).filter(([, value]) => value !== null && value !== undefined)
  const width = Math.max(...known.map(([name]) => name.length))
  return known.map(([name, value]) => `${name.padEnd(width)}  ${oneLine(String(value))}`).join('\n')
}
