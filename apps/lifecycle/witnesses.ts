import type { Logger } from 'pino'
import type { AuditLog, Checkpoint } from '#libs/domain/audit/audit-log.js'
import { checkpointBody, cosignatureOf, signCheckpoint } from '#libs/domain/audit/checkpoint.js'
import type { AuditEvent } from '#libs/domain/audit/events.js'
import { originOf } from '#libs/domain/audit/leaf.js'
import { consistencyOf, join } from '#libs/domain/audit/tree.js'
import type { Witness, WitnessPolicy } from '#libs/domain/audit/witness-policy.js'
import type { LogId } from '#libs/domain/ids/typeid.js'
import { auditKeysOf, type DerivedKeys } from '#libs/ports/key-vault/master-key.js'
import type { AuditQueries } from '#libs/ports/read-model/queries.js'
import { messageOf } from '#libs/runtime/errors.js'

/*
 * Has checkpoints cosigned by witnesses (C2SP tlog-witness): they cosign only what continues the last checkpoint of the log
 * that they have seen, so a log that was replaced, or that shows different readers different leaves, is not cosigned.
 */

/** Of all attempts for a checkpoint. */
const TIMEOUT_MS = 5_000
/** How long a witness that did not answer is not asked, so that it does not hold up the others. */
const AWAY_MS = 10_000
/** Of an answer: a few lines. */
const MAX_ANSWER_BYTES = 64 * 1024
/** The witness may have seen another checkpoint than the last one that was cosigned. */
const MAX_ATTEMPTS = 3
const LOGS_AT_ONCE = 16

interface WitnessesOptions {
  policy: WitnessPolicy
  publicUrl: string | null
  secrets: DerivedKeys
  audit: Pick<AuditQueries, 'subtreeHashes'>
  record: (event: AuditEvent) => Promise<void>
  logger: Logger
}

/** A log with the checkpoint that is to be cosigned. */
export type UncosignedLog = Pick<AuditLog, 'id' | 'cosigned'> & { checkpoint: Checkpoint }

export class Witnesses {
  private readonly waiting = new Map<LogId, UncosignedLog>()
  private readonly running = new Map<LogId, Promise<void>>()
  /** By the name of a witness. */
  private readonly awayUntilMs = new Map<string, number>()
  /** By log and witness, why the last checkpoint was not cosigned, so that a repetition is not logged. */
  private readonly refusals = new Map<string, string>()
  private readonly stopping = new AbortController()

  constructor(private readonly options: WitnessesOptions) {}

  /** Has a checkpoint cosigned in the background. It takes the place of an earlier one of its log that still waits. */
  add(log: UncosignedLog): void {
    this.waiting.set(log.id, log)
    this.startNext()
  }

  /** Resolves once nothing is in progress. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await Promise.all(this.running.values())
  }

  private startNext(): void {
    if (this.running.size >= LOGS_AT_ONCE || this.stopping.signal.aborted) return
    for (const log of this.waiting.values()) {
      if (this.running.has(log.id)) continue
      this.start(log)
      return
    }
  }

  private start(log: UncosignedLog): void {
    const { id: logId } = log
    this.waiting.delete(logId)
    const run = this.cosign(log)
      .catch((error: unknown) =>
        this.options.logger.error({ err: error, logId }, 'recording cosignatures failed'),
      )
      .finally(() => {
        this.running.delete(logId)
        this.startNext()
      })
    this.running.set(logId, run)
  }

  /** Records that a checkpoint was cosigned, if enough witnesses have. */
  private async cosign(log: UncosignedLog): Promise<void> {
    const { policy, record } = this.options
    const lines = await Promise.all(policy.witnesses.map((witness) => this.lineOf(witness, log)))
    const cosignatures = lines.filter((line) => line !== '')
    const names = policy.witnesses.filter((_, at) => lines[at] !== '').map(({ name }) => name)
    if (cosignatures.length === 0 || !policy.isMet(new Set(names))) return
    await record({ type: 'CheckpointCosigned', logId: log.id, ...log.checkpoint, cosignatures })
  }

  /** The line of the cosignature; empty if there is none, which is logged. */
  private async lineOf(witness: Witness, log: UncosignedLog): Promise<string> {
    const { name, url } = witness
    if (url === null || Date.now() < (this.awayUntilMs.get(name) ?? 0)) return ''
    const key = `${log.id} ${name}`
    try {
      const line = await this.ask(witness, url, log)
      this.refusals.delete(key)
      return line
    } catch (error) {
      if (this.stopping.signal.aborted) return ''
      const why = messageOf(error)
      if (!(error instanceof Refusal)) this.awayUntilMs.set(name, Date.now() + AWAY_MS)
      if (this.refusals.get(key) !== why) {
        this.options.logger.warn({ witness: name, logId: log.id, why }, 'a witness has not cosigned')
      }
      this.refusals.set(key, why)
      return ''
    }
  }

  /** Throws Refusal if the witness has answered, but not cosigned the checkpoint. */
  private async ask({ verifier }: Witness, url: string, log: UncosignedLog): Promise<string> {
    const { publicUrl, secrets } = this.options
    const { id, checkpoint } = log
    const origin = originOf(publicUrl, id)
    const note = signCheckpoint(origin, checkpoint, auditKeysOf(secrets, id), checkpoint.takenAt)
    const signal = AbortSignal.any([this.stopping.signal, AbortSignal.timeout(TIMEOUT_MS)])
    let old = log.cosigned?.size ?? 0
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const body = `old ${old}\n${await this.proofOf(id, old, checkpoint.size)}\n${note}`
      const { status, text } = await post(`${url}/add-checkpoint`, body, signal)
      if (status === 200) {
        const line = cosignatureOf(checkpointBody(origin, checkpoint), text, verifier)
        if (line === null) throw new Refusal('its cosignature is not genuine')
        return line
      }
      if (status !== 409) throw new Refusal(`it answered ${status}: ${text.trim().slice(0, 200)}`)
      const [seen] = /^(0|[1-9]\d{0,14})\n?$/.exec(text) ?? []
      if (seen === undefined) throw new Refusal('it answered 409 without the size that it has seen')
      if (Number(seen) === old) throw new Refusal(`it has seen another root of the first ${old} leaves`)
      old = Number(seen)
      if (old > checkpoint.size) {
        throw new Refusal(`it has seen a checkpoint of ${old} leaves, which is later than ${checkpoint.size}`)
      }
    }
    throw new Refusal('it has seen another checkpoint each time')
  }

  /** A line for each hash that proves that the log continues its first leaves. */
  private async proofOf(logId: LogId, old: number, size: number): Promise<string> {
    const parts = consistencyOf(old, size)
    const found = await this.options.audit.subtreeHashes(logId, parts.flat())
    return parts.map((part) => `${join(found.splice(0, part.length)).toString('base64')}\n`).join('')
  }
}

class Refusal extends Error {
  override readonly name = 'Refusal'
}

async function post(
  url: string,
  body: string,
  signal: AbortSignal,
): Promise<{ status: number; text: string }> {
  const response = await fetch(url, {
    ...{ method: 'POST', body, redirect: 'error', signal },
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  })
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece as Uint8Array, { stream: true })
    if (text.length > MAX_ANSWER_BYTES) throw new Refusal('its answer is too long')
  }
  return { status: response.status, text }
}
