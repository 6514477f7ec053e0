import { simpleParser } from 'mailparser'

const OPTIONS = { skipHtmlToText: true, skipTextToHtml: true, skipImageLinks: true }

/** Runs in a worker thread: parses mails with mailparser alone, and returns their number. */
export default async function parse(sources: readonly string[]): Promise<number> {
  for (const source of sources) await simpleParser(source, OPTIONS)
  return sources.length
}
