import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { once } from 'node:events'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { Budget, BudgetExhaustedError, type Release } from '#libs/runtime/fairness/budget.js'
import { callerOf, principalOf } from '../access/principal.js'
import { clientAddress } from './connection-limits.js'
import { Problem } from './problems.js'
import { nextTurn, outsideTurn } from './request-turns.js'

const MIB = 1024 * 1024
/** The memory of all manifests, and of one: enough for a million lines. */
const MANIFESTS_MIB = { total: 256, each: 224 }
/** The maximum wait for a turn or memory. Then the request is answered 503. */
const WAIT_MS = 10_000
/** Reads and answers over this size are large: a read needs a turn, an answer needs memory. */
export const LARGE_BYTES = 256 * 1024
/** The cost of reading a message in addition to its bytes, as a number of bytes with the same cost. */
const MESSAGE_BYTES = 4 * 1024

/**
 * Shares the time and memory of this process among accounts. Each account makes one large read and one batch (a bulk
 * request, a verification or a usage query) at a time. Large answers, and events of streams, hold memory until their
 * clients have received them, and bodies until they are answered (docs/limits.md).
 */
export class RequestBudgets {
  private readonly reads: Budget
  private readonly batches: Budget
  private readonly answers: Budget
  private readonly bodies: Budget
  private readonly maxManifestBytes: Record<keyof typeof MANIFESTS_MIB, number>
  private manifestBytes = 0

  /**
   * `memoryScale` is the fraction of the full memory: above 0, at most 1. `onExhausted` is called with the name of a
   * budget when a request has waited too long for it.
   */
  constructor(options: { memoryScale: number; onExhausted: (budget: string) => void }) {
    const { memoryScale, onExhausted } = options
    const budget = (name: string, total: number, perOwner: number) =>
      new Budget({ total, perOwner, waitMs: WAIT_MS, onExhausted: () => onExhausted(name) })
    const bytes = memoryScale * MIB
    this.reads = budget('reads', 8, 1)
    this.batches = budget('batches', 8, 1)
    this.answers = budget('answers', 320 * bytes, 96 * bytes)
    // A larger body counts as its account's share: four at once, or one with a quarter of the memory.
    this.bodies = budget('bodies', 32 * bytes, Math.min(8 * MIB, 24 * bytes))
    this.maxManifestBytes = { total: MANIFESTS_MIB.total * bytes, each: MANIFESTS_MIB.each * bytes }
  }

  /** Runs work that opens mail for a client, and aborts it when the client leaves. Throws BudgetExhaustedError. */
  read<Result>(request: FastifyRequest, work: (read: MailRead) => Promise<Result>): Promise<Result> {
    const { accountId } = callerOf(request)
    return untilClientLeaves(request, (clientGone) => this.readFor(accountId, clientGone, work))
  }

  /** As `read`, until the signal aborts. Then rejects with its reason. */
  async readFor<Result>(
    accountId: AccountId,
    signal: AbortSignal,
    work: (read: MailRead) => Promise<Result>,
  ): Promise<Result> {
    const read = new MailRead(() => this.reads.take(accountId, 1, signal), signal)
    try {
      return await work(read)
    } finally {
      read.end()
    }
  }

  /**
   * Runs a query that may read many more rows than it returns, when it is the account's turn for a large read or a batch,
   * unless the client has left. Throws BudgetExhaustedError.
   */
  query<Result>(
    request: FastifyRequest,
    work: () => Promise<Result>,
    budget: 'reads' | 'batches',
  ): Promise<Result> {
    const { accountId } = callerOf(request)
    return untilClientLeaves(request, async (clientGone) => {
      const release = await outsideTurn(request, () => this[budget].take(accountId, 1, clientGone))
      try {
        return await work()
      } finally {
        release()
      }
    })
  }

  /**
   * Creates or deletes many inboxes when it is the account's turn. The turn lasts until the work is done, even if the client
   * has left, and the answer is sent or the connection has closed. Throws BudgetExhaustedError.
   */
  bulk<Result>(reply: FastifyReply, work: () => Promise<Result>): Promise<Result> {
    return inTurnUntilSent(this.batches, reply, work)
  }

  /**
   * Verifies a run when it is the account's turn, which lasts as that of `bulk`. `read` paces the reading of its mail, and is
   * aborted when the connection closes. `grow` takes memory for its manifest, and throws body-too-large if that is too
   * much for one, or busy if others hold it. Throws BudgetExhaustedError.
   */
  verify<Result>(
    reply: FastifyReply,
    work: (read: MailRead, grow: (bytes: number) => void) => Promise<Result>,
  ): Promise<Result> {
    return inTurnUntilSent(this.batches, reply, async (closing) => {
      const { total, each } = this.maxManifestBytes
      let held = 0
      const grow = (bytes: number) => {
        if (held + bytes > each) throw manifestTooLarge(each)
        if (this.manifestBytes + bytes > total) throw new BudgetExhaustedError()
        held += bytes
        this.manifestBytes += bytes
      }
      closing.addEventListener('abort', () => (this.manifestBytes -= held))
      // The turn of the verification is enough.
      const takeTurn = () => Promise.resolve(() => undefined)
      const read = new MailRead(takeTurn, closing, () => nextTurn(reply.request))
      return work(read, grow)
    })
  }

  /**
   * Takes memory for an answer, and releases it once the answer is sent or the connection has closed. Throws
   * BudgetExhaustedError. A request without a key names the account.
   */
  async holdAnswer(reply: FastifyReply, bytes: number, accountId?: AccountId): Promise<void> {
    if (bytes <= LARGE_BYTES) return
    await hold(this.answers, accountId ?? callerOf(reply.request).accountId, bytes, reply)
  }

  /**
   * Takes memory for the body of a request, and releases it once the answer is sent or the connection has closed. Throws
   * BudgetExhaustedError.
   */
  async holdBody(reply: FastifyReply, bytes: number): Promise<void> {
    const { request } = reply
    const owner = principalOf(request)?.accountId ?? clientAddress(request)
    await hold(this.bodies, owner, bytes, reply)
  }

  /** Takes memory for an event of a stream, until the client has read it. Throws BudgetExhaustedError. */
  holdEvent(accountId: AccountId, bytes: number): Promise<Release> {
    return this.answers.take(accountId, bytes)
  }
}

/** Takes memory until the response is closed. */
async function hold(budget: Budget, owner: string, bytes: number, reply: FastifyReply): Promise<void> {
  const { request, raw: response } = reply
  const release = await untilClientLeaves(request, (clientGone) => budget.take(owner, bytes, clientGone))
  response.once('close', release)
  if (response.closed) release()
}

/**
 * Runs work when it is the account's turn. The turn lasts until the work is done, even if the client has left, and the
 * answer is sent or the connection has closed. Then the signal aborts.
 */
async function inTurnUntilSent<Result>(
  budget: Budget,
  { request, raw: response }: FastifyReply,
  work: (closing: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { accountId } = callerOf(request)
  const take = (clientGone: AbortSignal) => outsideTurn(request, () => budget.take(accountId, 1, clientGone))
  const release = await untilClientLeaves(request, take)
  const closing = new AbortController()
  const working = work(closing.signal)
  const whenClosed = response.closed ? Promise.resolve() : once(response, 'close')
  const abort = () => closing.abort(clientLeft())
  void Promise.allSettled([working, whenClosed.then(abort, abort)]).then(release)
  return working
}

/**
 * Paces the reading of mail for one request. A small read never waits. A large read waits for its account's turn, and
 * lets other requests run after every 256 KiB.
 */
export class MailRead {
  private bytes = 0
  private bytesAtPause = 0
  private release: Release | null = null

  constructor(
    private readonly takeTurn: () => Promise<Release>,
    readonly signal: AbortSignal,
    private readonly pause: () => Promise<void> = nextLoopTurn,
  ) {}

  /**
   * Must be called before each message is read. Rejects with the signal's reason if it has aborted during a large read.
   */
  async pace(messageBytes: number): Promise<void> {
    this.bytes += messageBytes + MESSAGE_BYTES
    if (this.bytes > LARGE_BYTES) this.release ??= await this.takeTurn()
    if (this.bytes - this.bytesAtPause > LARGE_BYTES) {
      this.bytesAtPause = this.bytes
      await this.pause()
    }
    if (this.release !== null) this.signal.throwIfAborted()
  }

  end(): void {
    this.release?.()
  }
}

/**
 * Runs work that a client waits for. The signal aborts when the client closes the connection or only its sending side:
 * both look the same until something is written. The signal's reason is the problem to answer if the client has closed
 * only its sending side.
 */
export async function untilClientLeaves<Result>(
  { raw: { socket } }: FastifyRequest,
  work: (clientGone: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const leaving = new AbortController()
  const leave = () => leaving.abort(clientLeft())
  if (socket.readableEnded || socket.destroyed) leave()
  socket.once('end', leave).once('close', leave)
  try {
    return await work(leaving.signal)
  } finally {
    socket.off('end', leave).off('close', leave)
  }
}

function manifestTooLarge(maxBytes: number): Problem {
  const detail = `The recipients and ids of the manifest need more than ${Math.floor(maxBytes / MIB)} MiB, the maximum of an account.`
  return new Problem('body-too-large', { detail })
}

function clientLeft(): Problem {
  return new Problem('invalid-request', {
    detail:
      'The client closed its side of the connection before the answer was ready: keep it open until then.',
  })
}
