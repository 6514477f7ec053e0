import { InvalidArgumentError, Option, type Command } from 'commander'

/** A whole number from 1 on. */
export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1 on.')
  return Number(text)
}

/** Seconds, as many as an hour has at most. */
export function seconds(text: string): number {
  const count = /^\d{1,4}$/.test(text) ? Number(text) : NaN
  if (!(count <= 3_600)) throw new InvalidArgumentError('It must be a whole number of seconds, at most 3600.')
  return count
}

/** One more `<name>:<value>` behind those that came before. */
export function label(text: string, before: readonly string[] = []): readonly string[] {
  if (text.indexOf(':') < 1) throw new InvalidArgumentError('It must be <name>:<value>.')
  return [...before, text]
}

export function pairsOf(labels: readonly string[]): Record<string, string> {
  const pairs = labels.map((text) => {
    const colon = text.indexOf(':')
    return [text.slice(0, colon), text.slice(colon + 1)] as const
  })
  return Object.fromEntries(pairs)
}

/** For commands that reach into an inbox. */
export function passwordOption(): Option {
  return new Option('--password <password>', 'of a protected inbox').env('MAYFLY_INBOX_PASSWORD')
}

export function inboxPath(id: string): string {
  return `/v1/inboxes/${encodeURIComponent(id)}`
}

/** What a message must be like, as the API's query has it. */
export interface Filters {
  subject?: string
  sender?: string
  recipient?: string
  text?: string
}

export function withFilters(command: Command): Command {
  return command
    .option('--subject <text>', 'the subject contains it')
    .option('--sender <text>', "the sender's address or name contains it")
    .option('--recipient <text>', 'the recipient contains it')
    .option('--text <text>', 'the text, or the visible text of the HTML, contains it')
}
