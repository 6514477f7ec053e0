import { createTransport } from 'nodemailer'
import { setTimeout as pause } from 'node:timers/promises'
import { call, createInbox, OtherAnswerError, type InboxJson, type Target } from '#test/harness/client.js'
import type { Ledger } from './ledger.js'

export interface Load {
  /** Answers that were promises: 201 and 250. */
  promises(): number
  /** What refused or broke, oldest first. */
  failures(): unknown[]
  /** Of these the ones that are not for now but for good, though what was asked for had been promised. */
  denials(): unknown[]
  /** Resolves once every sender and creator has stopped. */
  stop(): Promise<void>
}

export interface LoadOptions {
  senders: number
  creators: number
  /** Look at inboxes that were promised; what they find is no promise. None, unless told otherwise. */
  readers?: number
  /** Goes on after a failure, until it is stopped. */
  isPersistent?: boolean
  /** Of each sender it gets the first mail that is accepted, and every eighth from then on. */
  favourite?: InboxJson
}

const AFTER_FAILURE_MS = 100
const BETWEEN_LOOKS_MS = 20
const MAX_WAIT_MS = 15_000
const NEWEST = 3
const FAVOURED_EVERY = 8

/** Sends mails and makes inboxes until it is stopped or nothing answers any more, and notes every promise. */
export function startLoad(
  target: Target,
  ledger: Ledger,
  { senders, creators, readers = 0, isPersistent = false, favourite }: LoadOptions,
): Load {
  const failures: unknown[] = []
  let promises = 0
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
        const { id: inboxId, address } = favoured ?? pick([...ledger.inboxes.values()])
        const { source, sha256 } = ledger.makeSource(inboxId)
        const envelope = { from: 'sender@example.com', to: address }
        const { response } = await transport.sendMail({ envelope, raw: source })
        ledger.keepMail(response, { inboxId, sha256 })
        accepted += 1
        promises += 1
      })
    } finally {
      transport.close()
    }
  }

  async function create(): Promise<void> {
    await repeat(async () => {
      const inbox = await createInbox(target)
      ledger.inboxes.set(inbox.id, inbox)
      promises += 1
    })
  }

  async function read(): Promise<void> {
    await repeat(async () => {
      const path = `/v1/inboxes/${pick([...ledger.inboxes.values()]).id}`
      const { status, body } = await call(target, 'GET', path)
      if (status !== 200) throw new OtherAnswerError(path, status, body)
      await pause(BETWEEN_LOOKS_MS)
    })
  }

  const workers = [
    ...Array.from({ length: senders }, () => send()),
    ...Array.from({ length: creators }, () => create()),
    ...Array.from({ length: readers }, () => read()),
  ]
  return {
    promises: () => promises,
    failures: () => [...failures],
    denials: () => failures.filter(isDenial),
    async stop() {
      isStopped = true
      await Promise.all(workers)
    },
  }
}

function isDenial(error: unknown): boolean {
  if (error instanceof OtherAnswerError) return error.status < 500
  return error instanceof Error && 'responseCode' in error && Number(error.responseCode) >= 500
}

/** Any of them, or one of the newest: those are lost the most easily. */
function pick(inboxes: readonly InboxJson[]): InboxJson {
  const among = Math.random() < 0.5 ? inboxes : inboxes.slice(-NEWEST)
  const inbox = among[Math.floor(Math.random() * among.length)]
  if (inbox === undefined) throw new Error('there is no inbox to send to')
  return inbox
}
