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

/** While more bytes than this wait for the disk, no mail is started. */
const MAX_WAITING_BYTES = 1024 * 1024

/** Opens the file that the mails of a run are written to, and replaces an existing one. Rejects with Failure. */
export async function openManifest(path: string): Promise<WriteStream> {
  const manifest = createWriteStream(path, { highWaterMark: MAX_WAITING_BYTES })
  await once(manifest, 'open').catch((error: unknown) => {
    throw cannotWrite(path, error)
  })
  return manifest
}

/** Resolves once the file is closed: complete, unless the stream has an error. */
export async function closeManifest(manifest: WriteStream): Promise<void> {
  if (!manifest.closed) await new Promise<void>((resolve) => manifest.once('close', resolve).end())
}
