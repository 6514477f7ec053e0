import { createHash, randomBytes } from 'node:crypto'
import { call, mail, type InboxJson, type MessageJson, type Target } from '#test/harness/client.js'
import { until } from '#test/harness/until.js'

interface SentMail {
  inboxId: string
  sha256: string
}

/** Everything that Mayfly has acknowledged, with 201 or 250, and everything that was attempted. */
export class AcknowledgedWrites {
  readonly inboxes = new Map<string, InboxJson>()
  readonly accepted = new Map<string, SentMail>()
  private readonly attempted = new Map<string, string>()

  /** A unique source, to be sent once. */
  makeSource(inboxId: string): { source: string; sha256: string } {
    const token = randomBytes(12).toString('hex')
    const source = mail(`Round ${token}`, `${token}\r\n`.repeat(1 + randomBytes(1).readUInt8() * 2))
    const sha256 = sha256Of(source)
    this.attempted.set(sha256, inboxId)
    return { source, sha256 }
  }

  recordMail(reply: string, sent: SentMail): void {
    const [, messageId] = /^250 2\.0\.0 (msg_\w+)/.exec(reply) ?? []
    if (messageId === undefined) throw new Error(`not a 250: ${reply}`)
    this.accepted.set(messageId, sent)
  }

  /**
   * Throws unless every acknowledged mail is visible once and unchanged, and no mail that was not sent. Returns the
   * number of visible mails.
   */
  async verify(target: Target): Promise<number> {
    const missing = new Map(this.accepted)
    const seen = new Set<string>()
    for (const inboxId of this.inboxes.keys()) {
      for (const { id, sha256 } of await allMessages(target, inboxId)) {
        if (seen.has(sha256)) throw new Error(`${id} is in ${inboxId} twice`)
        if (this.attempted.get(sha256) !== inboxId) throw new Error(`${id} in ${inboxId} was not sent there`)
        seen.add(sha256)
        const sent = missing.get(id)
        if (sent === undefined) continue
        if (sent.sha256 !== sha256) throw new Error(`${id} is not the mail that was accepted`)
        missing.delete(id)
      }
    }
    if (missing.size > 0) throw new Error(`accepted, but not visible: ${[...missing.keys()].join(', ')}`)
    return seen.size
  }

  /** Throws unless the sources of these messages are unchanged. */
  async verifySources(target: Target, messageIds: Iterable<string>): Promise<void> {
    for (const id of messageIds) {
      const { inboxId, sha256 } = this.accepted.get(id) ?? { inboxId: '', sha256: '' }
      const path = `/v1/inboxes/${inboxId}/messages/${id}/raw`
      const { status, body } = await call<string>(target, 'GET', path)
      if (status !== 200 || sha256Of(body) !== sha256)
        throw new Error(`the source of ${id} differs (${status})`)
    }
  }
}

export function sha256Of(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** All messages of an inbox. While the views catch up, the only other answer allowed is 503. */
export async function allMessages(target: Target, inboxId: string): Promise<MessageJson[]> {
  const messages: MessageJson[] = []
  let path: string | undefined = `/v1/inboxes/${inboxId}/messages?limit=100`
  while (path !== undefined) {
    const page: { messages: MessageJson[]; next?: string } = await completePage(target, path)
    messages.push(...page.messages)
    path = page.next
  }
  return messages
}

async function completePage(
  target: Target,
  path: string,
): Promise<{ messages: MessageJson[]; next?: string }> {
  return until(`${path} to be complete`, async () => {
    const { status, headers, body } = await call<MessageJson[]>(target, 'GET', path)
    if (status === 503) return null
    if (status !== 200) throw new Error(`${path} answers ${status}: ${JSON.stringify(body)}`)
    const [, next] = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '') ?? []
    return { messages: body, ...(next === undefined ? {} : { next: pathOf(next, target) }) }
  })
}

function pathOf(link: string, { url }: Target): string {
  return link.startsWith(url) ? link.slice(url.length) : link
}
