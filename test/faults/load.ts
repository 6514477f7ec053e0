import { createTransport } from 'nodemailer'
import { setTimeout as pause } from 'node:timers/promises'
import {
  call,
  createInbox,
  UnexpectedAnswerError,
  type InboxJson,
  type Target,
} from '#test/harness/client.js'
import type { AcknowledgedWrites } from './acknowledged-writes.js'

export interface Load {
  /** The number of 201 and 250 answers. */
  acknowledgements(): number
  /** Refusals and errors, oldest first. */
  failures(): unknown[]
  /** Those failures that are permanent refusals: always wrong, because only acknowledged inboxes are used. */
  permanentRefusals(): unknown[]
  /** The number of those failures that are mails refused because of a quota. */
  quotaRefusals(): number
  /** Resolves once every sender and creator has stopped. */
  stop(): Promise<void>
}

export interface LoadOptions {
  senders: number
  creators: number
  /** Clients that read acknowledged inboxes, 0 by default. */
  readers?: number
  /** Continues after a failure. */
  isPersistent?: boolean
  /** Gets the first and then every eighth accepted mail of each sender. */
  favourite?: InboxJson
}

const AFTER_FAILURE_MS = 100
const BETWEEN_READS_MS = 20
const MAX_WAIT_MS = 15_000
const NEWEST = 3
const FAVOURED_EVERY = 8

/** Sends mails and creates inboxes until it is stopped or a request fails, and records what was acknowledged. */
export function startLoad(
  target: Target,
  acknowledged: AcknowledgedWrites,
  { senders, creators, readers = 0, isPersistent = false, favourite }: LoadOptions,
): Load {
  const failures: unknown[] = []
  let acknowledgements = 0
  let isStopped = false

  async function repeat(work: () => Promise<void>): Promise<void> {
    while (!isStopped) {
      try {
        await work()
      } catch (error) {
        failures.push(error)
        if (!isPersistent) return
        await pause(AFTER_FAILURE_MS)
      }
    }
  }

  async function send(): Promise<void> {
    const transport = createTransport({
      host: '127.0.0.1',
      port: target.smtpPort,
      ignoreTLS: true,
      pool: true,
      maxConnections: 1,
      maxMessages: 1_000_000,
      connectionTimeout: MAX_WAIT_MS,
      greetingTimeout: MAX_WAIT_MS,
      socketTimeout: MAX_WAIT_MS,
    })
    transport.on('error', (error) => failures.push(error))
    let accepted = 0
    try {
      await repeat(async () => {
        const favoured = accepted % FAVOURED_EVERY === 0 ? favourite : undefined
        const { id: inboxId, address } = favoured ?? pick([...acknowledged.inboxes.values()])
        const { source, sha256 } = acknowledged.makeSource(inboxId)
        const envelope = { from: 'sender@example.com', to: address }
        const { response } = await transport.sendMail({ envelope, raw: source })
        acknowledged.recordMail(response, { inboxId, sha256 })
        accepted += 1
        acknowledgements += 1
      })
    } finally {
      transport.close()
    }
  }

  async function create(): Promise<void> {
    await repeat(async () => {
      const inbox = await createInbox(target)
      acknowledged.inboxes.set(inbox.id, inbox)
      acknowledgements += 1
    })
  }

  async function read(): Promise<void> {
    await repeat(async () => {
      const path = `/v1/inboxes/${pick([...acknowledged.inboxes.values()]).id}`
      const { status, body } = await call(target, 'GET', path)
      if (status !== 200) throw new UnexpectedAnswerError(path, status, body)
      await pause(BETWEEN_READS_MS)
    })
  }

  const workers = [
    ...Array.from({ length: senders }, () => send()),
    ...Array.from({ length: creators }, () => create()),
    ...Array.from({ length: readers }, () => read()),
  ]
  return {
    acknowledgements: () => acknowledgements,
    failures: () => [...failures],
    permanentRefusals: () => failures.filter(isPermanentRefusal),
    quotaRefusals: () => failures.filter((error) => /^(?=.*452).*quota/.test(String(error))).length,
    async stop() {
      isStopped = true
      await Promise.all(workers)
    },
  }
}

function isPermanentRefusal(error: unknown): boolean {
  if (error instanceof UnexpectedAnswerError) return error.status < 500
  return error instanceof Error && 'responseCode' in error && Number(error.responseCode) >= 500
}

/** Any inbox or, half of the time, one of the newest, which are the most likely to be lost. */
function pick(inboxes: readonly InboxJson[]): InboxJson {
  const among = Math.random() < 0.5 ? inboxes : inboxes.slice(-NEWEST)
  const inbox = among[Math.floor(Math.random() * among.length)]
  if (inbox === undefined) throw new Error('there is no inbox to send to')
  return inbox
}
