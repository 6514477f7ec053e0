import { writeFile } from 'node:fs/promises'
import { MayflyError, type Inbox, type Message } from '@mayfly/client'
import type { TestInfo } from '@playwright/test'
import { renderMail } from './mail-html.js'

/** The newest mails of a test that are attached. */
const MAX_MAILS = 5
const MAX_SOURCE_BYTES = 10 * 1024 * 1024
const MAX_SUBJECT_CHARACTERS = 60

/** Attaches the newest mails of a failed test to its report: as an HTML document, and the source. */
export async function attachMail(testInfo: TestInfo, inboxes: readonly Inbox[]): Promise<void> {
  const messages = (await Promise.all(inboxes.map((each) => newestMessages(testInfo, each)))).flat()
  messages.sort((a, b) => b.received_at.localeCompare(a.received_at))
  for (const [index, message] of messages.slice(0, MAX_MAILS).entries()) {
    const file = `mail-${index + 1}`
    const subject = (message.subject ?? 'no subject').replaceAll(/\p{Cc}/gu, ' ')
    const name = `${file}: ${subject.slice(0, MAX_SUBJECT_CHARACTERS)}`
    await attach(
      testInfo,
      { name, file: `${file}.html`, contentType: 'text/html' },
      await renderMail(message),
    )
    if (message.size > MAX_SOURCE_BYTES) continue
    const source = { name: `${file}.eml`, file: `${file}.eml`, contentType: 'message/rfc822' }
    await attach(testInfo, source, await message.raw())
  }
}

/** Also notes in the report where the inbox is. Its mail can't be read if the test has deleted it, or Mayfly stopped. */
async function newestMessages({ annotations }: TestInfo, inbox: Inbox): Promise<Message[]> {
  try {
    const messages = await inbox.listMessages({ order: 'desc', limit: MAX_MAILS })
    const description = `${inbox.address} is kept as ${inbox.id} until ${inbox.expires_at}`
    annotations.push({ type: 'inbox', description })
    return messages
  } catch (error) {
    if (!(error instanceof MayflyError)) throw error
    const description = `The mail of ${inbox.address} can't be read: ${error.message}`
    annotations.push({ type: 'inbox', description })
    return []
  }
}

/** Attaches a file, because the report would have the content of a large body inline. */
async function attach(
  testInfo: TestInfo,
  { name, file, contentType }: { name: string; file: string; contentType: string },
  content: string | Uint8Array,
): Promise<void> {
  const path = testInfo.outputPath(file)
  await writeFile(path, content)
  await testInfo.attach(name, { path, contentType })
}
