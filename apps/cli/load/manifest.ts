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

const BATCH_CHARACTERS = 65_536

/** Writes the mails of a run to a file as NDJSON, in batches. */
export class Manifest {
  private batch = ''
  private isBlocked = false

  private constructor(
    private readonly stream: WriteStream,
    private readonly onDrain: () => void,
  ) {
    stream.on('drain', () => {
      this.isBlocked = false
      this.onDrain()
    })
  }

  /** Replaces an existing file. Rejects if the file can't be opened. `onError` is called at most once. */
  static async open(
    path: string,
    { onDrain, onError }: { onDrain: () => void; onError: (error: Error) => void },
  ): Promise<Manifest> {
    const stream = createWriteStream(path)
    await once(stream, 'open')
    stream.once('error', onError)
    return new Manifest(stream, onDrain)
  }

  /** Whether the disk is behind. Then no mail should be begun until `onDrain` is called. */
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

  /** Resolves once the whole manifest is written. */
  async close(): Promise<void> {
    this.flush()
    if (this.stream.destroyed) return
    this.stream.end()
    await once(this.stream, 'close')
  }
}
