import { createHash, randomBytes } from 'node:crypto'
import { call, mail, type InboxJson, type MessageJson, type Target } from '#test/harness/client.js'
import { until } from '#test/harness/until.js'

interface Sent {
  inboxId: string
  sha256: string
}

/** What Mayfly has promised: every 201, every 250, and what else was tried. */
export class Ledger {
  readonly inboxes = new Map<string, InboxJson>()
  readonly accepted = new Map<string, Sent>()
  private readonly tried = new Map<string, string>()

  /** A source that was never sent before; it is sent once. */
  makeSource(inboxId: string): { source: string; sha256: string } {
    const token = randomBytes(12).toString('hex')
    const source = mail(`Round ${token}`, `${token}\r\n`.repeat(1 + randomBytes(1).readUInt8() * 2))
    const sha256 = sha256Of(source)
    this.tried.set(sha256, inboxId)
    return { source, sha256 }
  }

  keepMail(reply: string, sent: Sent): void {
    const [, messageId] = /^250 2\.0\.0 (msg_\w+)/.exec(reply) ?? []
    if (messageId === undefined) throw new Error(`not an acceptance: ${reply}`)
    this.accepted.set(messageId, sent)
  }

  /** Everything promised is there, once and unchanged, and nothing that was never sent. Returns the mails seen. */
  async mustHold(target: Target): Promise<number> {
    const missing = new Map(this.accepted)
    const seen = new Set<string>()
    for (const inboxId of this.inboxes.keys()) {
      for (const { id, sha256 } of await allMessages(target, inboxId)) {
        if (seen.has(sha256)) throw new Error(`${id} is in ${inboxId} twice`)
        if (this.tried.get(sha256) !== inboxId) throw new Error(`${id} in ${inboxId} was not sent there`)
        seen.add(sha256)
        const promised = missing.get(id)
        if (promised === undefined) continue
        if (promised.sha256 !== sha256) throw new Error(`${id} is not the mail that was accepted`)
        missing.delete(id)
      }
    }
    if (missing.size > 0) throw new Error(`accepted, and not there: ${[...missing.keys()].join(', ')}`)
    return seen.size
  }

  /** The sources of these messages, byte for byte. */
  async sourcesMustHold(target: Target, messageIds: Iterable<string>): Promise<void> {
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

/** Every page of an inbox's messages; while the views catch up, 503 and nothing else may be answered. */
export async function allMessages(target: Target, inboxId: string): Promise<MessageJson[]> {
  const messages: MessageJson[] = []
  let path: string | undefined = `/v1/inboxes/${inboxId}/messages?limit=100`
  while (path !== undefined) {
    const page: { messages: MessageJson[]; next?: string } = await knownPage(target, path)
    messages.push(...page.messages)
    path = page.next
  }
  return messages
}

async function knownPage(target: Target, path: string): Promise<{ messages: MessageJson[]; next?: string }> {
  return until(`${path} to be known`, async () => {
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
