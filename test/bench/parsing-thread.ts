import { simpleParser } from 'mailparser'

const OPTIONS = { skipHtmlToText: true, skipTextToHtml: true, skipImageLinks: true }

/** Runs in a thread of its own: reads mails as mailparser does, and gives back how many. */
export default async function parse(sources: readonly string[]): Promise<number> {
  for (const source of sources) await simpleParser(source, OPTIONS)
  return sources.length
}
