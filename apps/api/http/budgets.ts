import type { FastifyReply, FastifyRequest } from 'fastify'
import { Budget, type Release } from '#libs/runtime/fair-share.js'
import { addressGroup, plainAddress } from '#libs/runtime/remote-address.js'
import type { AccountId } from '#libs/domain/ids/typeid.js'
import { principalOf, callerOf } from '../access/authenticator.js'
import { Problem } from './problems.js'

const MIB = 1024 * 1024
/** The longest wait for a turn or memory; then the request is answered 503. */
const WAIT_MS = 10_000
/** Reads and answers of more than this are large: they need a turn, or memory. */
export const LARGE_BYTES = 256 * 1024
/** The cost of reading a message apart from its bytes, in bytes that cost as much. */
const MESSAGE_BYTES = 4 * 1024

/**
 * What the requests of this process share of its time and memory, account by account: each account makes one large read
 * and one report at a time, and its large answers take memory until their clients have them (docs/limits.md).
 */
export class RequestBudgets {
  private readonly reads: Budget
  private readonly reports: Budget
  private readonly answers: Budget
  private readonly events: Budget
  private readonly bodies: Budget

  /**
   * `memoryScale` is the part of the full size of memory: above 0, at most 1. `onExhausted` is called with a budget's
   * name when a request has waited too long for it.
   */
  constructor(options: { memoryScale: number; onExhausted: (budget: string) => void }) {
    const { memoryScale, onExhausted } = options
    const budget = (name: string, total: number, perOwner: number) =>
      new Budget({ total, perOwner, waitMs: WAIT_MS, onExhausted: () => onExhausted(name) })
    const bytes = memoryScale * MIB
    this.reads = budget('reads', 8, 1)
    this.reports = budget('reports', 4, 1)
    this.answers = budget('answers', 256 * bytes, 96 * bytes)
    this.events = budget('events', 64 * bytes, 24 * bytes)
    this.bodies = budget('bodies', 32 * bytes, 8 * bytes)
  }

  /** Runs work that opens mail for a client, and ends it when the client leaves. Throws BudgetExhaustedError. */
  read<Result>(request: FastifyRequest, work: (read: MailRead) => Promise<Result>): Promise<Result> {
    const { accountId } = callerOf(request)
    return untilDeparture(request, (departure) => this.readFor(accountId, departure, work))
  }

  /** As `read`, until the signal aborts: rejects with its reason. */
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

  /** Runs a query of usage when it is the account's turn, unless the client has left. Throws BudgetExhaustedError. */
  report<Result>(request: FastifyRequest, work: () => Promise<Result>): Promise<Result> {
    return inTurn(this.reports, request, work)
  }

  /** The same for a list that may read many more rows than it returns: it counts as a large read. */
  search<Result>(request: FastifyRequest, work: () => Promise<Result>): Promise<Result> {
    return inTurn(this.reads, request, work)
  }

  /**
   * Takes memory for an answer, which is given back once the answer has been sent or its connection has closed. Throws
   * BudgetExhaustedError.
   */
  async holdAnswer(reply: FastifyReply, bytes: number): Promise<void> {
    if (bytes > LARGE_BYTES) await hold(this.answers, callerOf(reply.request).accountId, bytes, reply)
  }

  /**
   * Takes memory for the body of a request, which is given back once the answer has been sent or the connection has
   * closed. Throws BudgetExhaustedError.
   */
  async holdBody(reply: FastifyReply, bytes: number): Promise<void> {
    const { request } = reply
    const { remoteAddress } = request.raw.socket
    const owner = principalOf(request)?.accountId ?? addressGroup(plainAddress(remoteAddress))
    await hold(this.bodies, owner, bytes, reply)
  }

  /** Takes memory for an event of a stream, to be given back when the next one is asked for. Throws as `readFor`. */
  holdEvent(accountId: AccountId, bytes: number, signal: AbortSignal): Promise<Release> {
    return this.events.take(accountId, bytes, signal)
  }
}

/** Takes memory until the response is closed. */
async function hold(budget: Budget, owner: string, bytes: number, reply: FastifyReply): Promise<void> {
  const { request, raw: response } = reply
  const release = await untilDeparture(request, (departure) => budget.take(owner, bytes, departure))
  response.once('close', release)
  if (response.closed) release()
}

function inTurn<Result>(
  budget: Budget,
  request: FastifyRequest,
  work: () => Promise<Result>,
): Promise<Result> {
  const { accountId } = callerOf(request)
  return untilDeparture(request, async (departure) => {
    const release = await budget.take(accountId, 1, departure)
    try {
      return await work()
    } finally {
      release()
    }
  })
}

/**
 * Reading mail for one request. A small read never waits. A large one waits for its account's turn, and lets other
 * requests run after every 256 KiB.
 */
export class MailRead {
  private bytes = 0
  private bytesAtPause = 0
  private release: Release | null = null

  constructor(
    private readonly takeTurn: () => Promise<Release>,
    private readonly signal: AbortSignal,
  ) {}

  /**
   * To be called before each message is read. Rejects with the signal's reason if that has aborted and the read is a
   * large one.
   */
  async goOn(messageBytes: number): Promise<void> {
    this.bytes += messageBytes + MESSAGE_BYTES
    if (this.bytes > LARGE_BYTES) this.release ??= await this.takeTurn()
    if (this.bytes - this.bytesAtPause > LARGE_BYTES) {
      this.bytesAtPause = this.bytes
      await new Promise(setImmediate)
    }
    if (this.release !== null) this.signal.throwIfAborted()
  }

  end(): void {
    this.release?.()
  }
}

/**
 * Runs work that a client waits for. The signal aborts when the client closes the connection, or only its sending side:
 * until something is written, the two look the same. Its reason is the answer to a client that closed only its sending
 * side.
 */
export async function untilDeparture<Result>(
  { raw: { socket } }: FastifyRequest,
  work: (departure: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const departing = new AbortController()
  const depart = () => departing.abort(hungUp())
  if (socket.readableEnded || socket.destroyed) depart()
  socket.once('end', depart).once('close', depart)
  try {
    return await work(departing.signal)
  } finally {
    socket.off('end', depart).off('close', depart)
  }
}

function hungUp(): Problem {
  return new Problem('invalid-request', {
    detail:
      'The client closed its side of the connection before the answer was ready: keep it open until then.',
  })
}
