import { createTransport } from 'nodemailer'
import { createInbox, type InboxJson } from '#test/harness/client.js'
import type { Mayfly } from '#test/harness/mayfly.js'
import type { Ledger } from './ledger.js'

export interface Load {
  /** Answers that were promises: 201 and 250. */
  promises(): number
  /** What refused or broke, oldest first. */
  failures(): unknown[]
  /** Resolves once every sender and creator has stopped. */
  stop(): Promise<void>
}

export interface LoadOptions {
  senders: number
  creators: number
}

/** Sends mails and makes inboxes until it is stopped or nothing answers any more, and notes every promise. */
export function startLoad(mayfly: Mayfly, ledger: Ledger, { senders, creators }: LoadOptions): Load {
  const failures: unknown[] = []
  let promises = 0
  let isStopped = false

  async function repeat(work: () => Promise<void>): Promise<void> {
    while (!isStopped) {
      try {
        await work()
        promises += 1
      } catch (error) {
        failures.push(error)
        return
      }
    }
  }

  async function send(): Promise<void> {
    const transport = createTransport({
      host: '127.0.0.1',
      port: mayfly.smtpPort,
      ignoreTLS: true,
      pool: true,
      maxConnections: 1,
      maxMessages: 1_000_000,
    })
    transport.on('error', (error) => failures.push(error))
    try {
      await repeat(async () => {
        const { id: inboxId, address } = pick([...ledger.inboxes.values()])
        const { source, sha256 } = ledger.makeSource(inboxId)
        const envelope = { from: 'sender@example.com', to: address }
        const { response } = await transport.sendMail({ envelope, raw: source })
        ledger.keepMail(response, { inboxId, sha256 })
      })
    } finally {
      transport.close()
    }
  }

  async function create(): Promise<void> {
    await repeat(async () => {
      const inbox = await createInbox(mayfly)
      ledger.inboxes.set(inbox.id, inbox)
    })
  }

  const workers = [
    ...Array.from({ length: senders }, () => send()),
    ...Array.from({ length: creators }, () => create()),
  ]
  return {
    promises: () => promises,
    failures: () => [...failures],
    async stop() {
      isStopped = true
      await Promise.all(workers)
    },
  }
}

function pick(inboxes: readonly InboxJson[]): InboxJson {
  const inbox = inboxes[Math.floor(Math.random() * inboxes.length)]
  if (inbox === undefined) throw new Error('there is no inbox to send to')
  return inbox
}
