import { once } from 'node:events'
import { createWriteStream, type WriteStream } from 'node:fs'
import { cannotWrite } from '../failure.js'

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

  private constructor(private readonly stream: WriteStream) {}

  /** Replaces an existing file. Rejects with Failure if the file can't be opened. */
  static async open(path: string): Promise<Manifest> {
    const stream = createWriteStream(path)
    await once(stream, 'open').catch((error: unknown) => {
      throw cannotWrite(path, error)
    })
    return new Manifest(stream)
  }

  /** Calls `onDrain` when the disk is no longer behind, and `onError` if the file can't be written. */
  watch(onDrain: () => void, onError: () => void): void {
    this.stream.on('drain', onDrain).on('error', onError)
  }

  /** Why the manifest is incomplete; null if it is complete so far. */
  get error(): Error | null {
    return this.stream.errored
  }

  /** Whether the disk is behind. Then no mail should be started until `onDrain` is called. */
  get isFull(): boolean {
    return this.stream.writableNeedDrain
  }

  add(line: ManifestLine): void {
    this.batch += `${JSON.stringify(line)}\n`
    if (this.batch.length >= BATCH_CHARACTERS) this.flush()
  }

  flush(): void {
    if (this.batch !== '') this.stream.write(this.batch)
    this.batch = ''
  }

  /** Resolves once the file is closed: complete, unless there is an `error`. */
  async close(): Promise<void> {
    this.flush()
    if (!this.stream.closed) await new Promise<void>((resolve) => this.stream.once('close', resolve).end())
  }
}
