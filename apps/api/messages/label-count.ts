import { Injectable } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import { environmentChannel } from '#libs/ports/read-model/consistent-views.js'
import type { LabelQuery, LabelTotals } from '#libs/ports/read-model/inbox-views.js'
import { pauseUntilAborted } from '#libs/runtime/timing.js'
import type { Principal } from '../access/principal.js'
import { faultsHint } from '../faults/fault-requests.dto.js'
import { RequestBudgets } from '../http/budgets.js'
import { invalid, Problem, type RequestError } from '../http/problems.js'
import { readLabels, type Label } from '../inboxes/inbox-requests.dto.js'
import { Instance } from '../instance.js'
import { Views } from '../views.js'
import { writeEnvironmentCursor } from './environment-cursor.js'
import type { CountMode, WaitForEnvironmentMessage } from './message-filters.js'
import { MessageWaits, REREAD_MS, type Examination } from './message-waits.js'

/*
 * Waits until the inboxes of a label have received a number of messages. If they don't in time, the answer says which
 * inboxes have too few or too many.
 */

/** What a wait requires of a label. */
export interface CountWanted {
  label: Label
  count: number
  mode: CountMode
  /** The minimum of each inbox, in both modes. Null if the messages may be distributed in any way. */
  perInbox: number | null
}

const MAX_LISTED = 100
/** `mode=exactly` must hold for this time. */
const EXACT_FOR_MS = 2_000
/** The minimum time from the start of one count of a wait to the next. */
const COUNT_AGAIN_MS = 50
/** The same as a multiple of the time that the last count took. */
const COUNT_AGAIN_FACTOR = 5

/** What may be sent with `count`. */
const WITH_COUNT: ReadonlySet<string> = new Set(['count', 'label', 'mode', 'per_inbox', 'timeout'])

/** What the query requires; null if it waits for a message. Throws invalid-request. */
export function readCountWanted(query: WaitForEnvironmentMessage): CountWanted | null {
  const { count, mode = 'at_least', per_inbox: perInbox = null } = query
  if (count === undefined) {
    const given = (['mode', 'per_inbox'] as const).find((name) => query[name] !== undefined)
    if (given === undefined) return null
    throw invalid({ detail: `${given} can only be sent with count`, parameter: given })
  }
  const [label, ...others] = readLabels(query.label)
  if (label === undefined || others.length > 0) {
    throw invalid({ detail: 'count needs exactly one label', parameter: 'label' })
  }
  const isDefault = (name: string, value: unknown) => name === 'order' && value === 'asc'
  const [first, ...rest] = Object.entries(query)
    .filter(([name, value]) => value !== undefined && !WITH_COUNT.has(name) && !isDefault(name, value))
    .map(([parameter]): RequestError => ({ detail: `${parameter} can't be sent with count`, parameter }))
  if (first !== undefined) throw invalid(first, ...rest)
  return { label, count, mode, perInbox }
}

/** The counts of a label. They are found if they are as required. */
interface Counted extends Examination, LabelTotals {
  cursor: string
}

/** Waits for numbers of messages. */
@Injectable()
export class LabelCounts {
  constructor(
    private readonly views: Views,
    private readonly waits: MessageWaits,
    private readonly budgets: RequestBudgets,
    private readonly instance: Instance,
  ) {}

  /** Answers once the label has the messages. Throws no-matching-message, and the errors of `untilFound`. */
  async wait(principal: Principal, wanted: CountWanted, timeout: number, reply: FastifyReply) {
    const { request } = reply
    const channel = environmentChannel(principal)
    const read = <Result>(work: () => Promise<Result>) =>
      this.budgets.query(request, () => this.views.readComplete('inbox-events', work), 'reads')
    const count = () => read(() => this.count(principal, wanted))
    const counted = await this.waits.untilFound<Counted>(request, channel, timeout, async (_, signal) => {
      const startedMs = performance.now()
      const first = await count()
      if (!first.isFound || wanted.mode === 'at_least') {
        // An account with many such waits counts less often, as its counts wait for their turn.
        const tookMs = performance.now() - startedMs
        return { ...first, notBeforeMs: startedMs + Math.max(COUNT_AGAIN_MS, COUNT_AGAIN_FACTOR * tookMs) }
      }
      // Deleting mail does not lower the count. If it is the same after this time, no further mail came.
      await pauseUntilAborted(EXACT_FOR_MS, signal)
      return signal.aborted ? { ...first, isFound: false } : count()
    })
    const { isFound, received, inboxes, cursor } = counted
    if (!isFound) throw await read(() => this.missed(principal, wanted, counted))
    void reply.header('mayfly-cursor', cursor)
    return { count: received, inboxes, cursor }
  }

  /** The views must be complete. */
  private async count(principal: Principal, { label, count, mode, perInbox }: CountWanted): Promise<Counted> {
    const query = this.queryOf(principal, label)
    const from = await this.views.endOffsets()
    const totals = await this.views.inboxes.labelTotals(query)
    const { received, inboxes } = totals
    const isEnough = received >= count && (mode === 'at_least' || received === count)
    // The totals often suffice. Each inbox is only looked at if they allow it.
    const isShared = perInbox === null || received >= perInbox * inboxes
    const isFound = isEnough && isShared && (perInbox === null || (await this.isEach(query, perInbox)))
    const cursor = writeEnvironmentCursor(principal, { from, range: null })
    return { ...totals, isFound, rereadMs: REREAD_MS, cursor }
  }

  /** Whether each inbox has at least a number of messages. */
  private async isEach(query: LabelQuery, min: number): Promise<boolean> {
    const few = await this.views.inboxes.listLabelCounts({ ...query, from: 0, to: min, limit: 1 })
    return few.length === 0
  }

  /**
   * The answer if a label does not have the messages in time, with the first inboxes that have too few or too many. If no
   * number is required of each, an even share is expected. The views must be complete.
   */
  private async missed(
    principal: Principal,
    { label, count, mode, perInbox }: CountWanted,
    { inboxes, received, cursor }: Counted,
  ): Promise<Problem> {
    const query = this.queryOf(principal, label)
    const share = perInbox ?? count / Math.max(inboxes, 1)
    const listed = async (from: number, to: number) => {
      const found = await this.views.inboxes.listLabelCounts({ ...query, from, to, limit: MAX_LISTED })
      return found.map(({ inboxId, received: each }) => ({ inbox_id: inboxId, count: each }))
    }
    const [tooFew, tooMany] = await Promise.all([
      listed(0, Math.floor(share)),
      listed(Math.ceil(share) + 1, Number.MAX_SAFE_INTEGER),
    ])
    const each = perInbox === null ? '' : `, at least ${perInbox} in each inbox`
    const expected = `${mode === 'exactly' ? 'exactly' : 'at least'} ${count} were expected${each}`
    const detail = `The inboxes with ${label.join(':')} have received ${received} messages, and ${expected}. Inboxes: ${inboxes}. Each list has at most ${MAX_LISTED} of them.`
    const hint = faultsHint(principal.defaultFaults, 'environment')
    return new Problem('no-matching-message', {
      detail: hint === null ? detail : `${detail} ${hint}`,
      headers: { 'mayfly-cursor': cursor },
      members: { count: received, expected: count, too_few: tooFew, too_many: tooMany, cursor },
    })
  }

  private queryOf({ accountId, environment }: Principal, [name, value]: Label): LabelQuery {
    return { accountId, environment, name, value, now: this.instance.now() }
  }
}
