import { createWriteStream, type WriteStream } from 'node:fs'
import { once } from 'node:events'

/** A mail in the manifest. */
export interface ManifestLine {
  recipient: string
  id: string
  /** When the first attempt began. */
  sent_at: string
  /** When the 250 came; null if none came. */
  accepted_at: string | null
  /** Of the source as sent, before dot-stuffing; null if the source was never sent. */
  sha256: string | null
  /** Why it was not accepted. */
  error?: string
}

interface ManifestEvents {
  /** The disk is no longer behind. */
  onDrain: () => void
  /** It can't be written. */
  onError: () => void
}

const BATCH_CHARACTERS = 65_536

/** Writes the mails of a run to a file as NDJSON, in batches. */
export class Manifest {
  private batch = ''
  private isBlocked = false
  private failure: Error | null = null

  private constructor(
    private readonly stream: WriteStream,
    { onDrain, onError }: ManifestEvents,
  ) {
    stream.on('drain', () => {
      this.isBlocked = false
      onDrain()
    })
    stream.on('error', (error) => {
      this.failure = error
      onError()
    })
  }

  /** Replaces an existing file. Rejects if the file can't be opened. */
  static async open(path: string, events: ManifestEvents): Promise<Manifest> {
    const stream = createWriteStream(path)
    await once(stream, 'open')
    return new Manifest(stream, events)
  }

  /** Why the manifest is incomplete; null if it is complete so far. */
  get error(): Error | null {
    return this.failure
  }

  /** Whether the disk is behind. Then no mail should be started until `onDrain` is called. */
  get isFull(): boolean {
    return this.isBlocked
  }

  add(line: ManifestLine): void {
    this.batch += `${JSON.stringify(line)}\n`
    if (this.batch.length >= BATCH_CHARACTERS) this.flush()
  }

  flush(): void {
    if (this.batch === '') return
    this.isBlocked = !this.stream.write(this.batch, 'utf8')
    this.batch = ''
  }

  /** Resolves once the file is closed: complete, unless there is an `error`. */
  async close(): Promise<void> {
    this.flush()
    if (this.stream.closed) return
    const { promise, resolve } = Promise.withResolvers<undefined>()
    this.stream.once('close', () => resolve(undefined)).end()
    await promise
  }
}
