import type { Logger } from 'pino'
import type { Checkpoint } from '#libs/domain/audit/audit-log.js'
import { checkpointBody, cosignatureOf, signCheckpoint } from '#libs/domain/audit/checkpoint.js'
import type { AuditEvent } from '#libs/domain/audit/events.js'
import { originOf } from '#libs/domain/audit/leaf.js'
import { consistencyOf, join } from '#libs/domain/audit/tree.js'
import type { Witness, WitnessPolicy } from '#libs/domain/audit/witness-policy.js'
import type { LogId } from '#libs/domain/ids/typeid.js'
import { auditKeysOf } from '#libs/ports/key-vault/audit-keys.js'
import type { DerivedKeys } from '#libs/ports/key-vault/master-key.js'
import type { AuditQueries } from '#libs/ports/read-model/queries.js'

/*
 * Has checkpoints cosigned by witnesses (C2SP tlog-witness): they cosign only what continues the last checkpoint of the log
 * that they have seen, so a log that was replaced, or that shows different readers different leaves, is not cosigned.
 */

const TIMEOUT_MS = 5_000
/** Of an answer: a few lines. */
const MAX_ANSWER_BYTES = 64 * 1024
/** The witness may have seen another checkpoint than the one that is known of it. */
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

export class Witnesses {
  /** By witness and log, the size of the last checkpoint that the witness has cosigned. */
  private readonly sizes = new Map<string, number>()

  private readonly waiting = new Map<LogId, Checkpoint>()
  private readonly running = new Set<Promise<void>>()
  private readonly stopping = new AbortController()

  constructor(private readonly options: WitnessesOptions) {}

  /** Has a checkpoint cosigned in the background. It takes the place of an earlier one of its log that still waits. */
  add(logId: LogId, checkpoint: Checkpoint): void {
    this.waiting.set(logId, checkpoint)
    this.startNext()
  }

  /** Resolves once nothing is in progress. */
  async stop(): Promise<void> {
    this.stopping.abort()
    await Promise.all(this.running)
  }

  private startNext(): void {
    const [next] = this.waiting
    if (next === undefined || this.running.size >= LOGS_AT_ONCE || this.stopping.signal.aborted) return
    const [logId, checkpoint] = next
    this.waiting.delete(logId)
    const run = this.cosign(logId, checkpoint)
      .catch((error: unknown) =>
        this.options.logger.error({ err: error, logId }, 'recording cosignatures failed'),
      )
      .finally(() => {
        this.running.delete(run)
        this.startNext()
      })
    this.running.add(run)
  }

  /** Records that a checkpoint was cosigned, if enough witnesses have. Logs errors of witnesses. */
  private async cosign(logId: LogId, checkpoint: Checkpoint): Promise<void> {
    const { policy, record, logger } = this.options
    const answers = await Promise.all(
      policy.witnesses.map(async (witness) => {
        try {
          return [witness.name, await this.ask(witness, logId, checkpoint)] as const
        } catch (error) {
          logger.warn({ err: error, witness: witness.name, logId }, 'a witness has not cosigned a checkpoint')
          return [witness.name, null] as const
        }
      }),
    )
    const cosigned = answers.filter(([, line]) => line !== null)
    if (cosigned.length === 0 || !policy.isMet(new Set(cosigned.map(([name]) => name)))) return
    const cosignatures = cosigned.flatMap(([, line]) => line ?? [])
    await record({ type: 'CheckpointCosigned', logId, ...checkpoint, cosignatures })
  }

  /** Resolves with the line of the cosignature; null for a witness without a URL. */
  private async ask(
    { name, verifier, url }: Witness,
    logId: LogId,
    checkpoint: Checkpoint,
  ): Promise<string | null> {
    if (url === null) return null
    const { publicUrl, secrets } = this.options
    const origin = originOf(publicUrl, logId)
    const note = signCheckpoint(origin, checkpoint, auditKeysOf(secrets, logId), checkpoint.takenAt)
    const known = `${name} ${logId}`
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const old = this.sizes.get(known) ?? 0
      const body = `old ${old}\n${await this.proofOf(logId, old, checkpoint.size)}\n${note}`
      const { status, text } = await post(`${url}/add-checkpoint`, body, this.stopping.signal)
      if (status === 409) {
        const seen = Number(text)
        if (!Number.isSafeInteger(seen) || seen < 0) throw new Error('the witness answered no size')
        if (seen > checkpoint.size) {
          throw new Error(`the witness has seen ${seen} leaves of the log, which has ${checkpoint.size}`)
        }
        this.sizes.set(known, seen)
        continue
      }
      if (status !== 200) throw new Error(`the witness answered ${status}: ${text.slice(0, 200)}`)
      const line = cosignatureOf(checkpointBody(origin, checkpoint), text, verifier)
      if (line === null) throw new Error('the cosignature of the witness is not genuine')
      this.sizes.set(known, checkpoint.size)
      return line
    }
    throw new Error('the witness has seen another checkpoint each time')
  }

  /** A line for each hash that proves that the log continues its first leaves. */
  private async proofOf(logId: LogId, old: number, size: number): Promise<string> {
    const parts = consistencyOf(old, size)
    const found = await this.options.audit.subtreeHashes(logId, parts.flat())
    return parts.map((part) => `${join(found.splice(0, part.length)).toString('base64')}\n`).join('')
  }
}

async function post(url: string, body: string, stop: AbortSignal): Promise<{ status: number; text: string }> {
  const response = await fetch(url, {
    method: 'POST',
    body,
    redirect: 'error',
    signal: AbortSignal.any([stop, AbortSignal.timeout(TIMEOUT_MS)]),
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  })
  const decoder = new TextDecoder()
  let text = ''
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece as Uint8Array, { stream: true })
    if (text.length > MAX_ANSWER_BYTES) throw new Error('the answer of the witness is too long')
  }
  return { status: response.status, text }
}
