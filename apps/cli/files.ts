import { open, rename, rm, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { EXIT, Failure, cannotWrite } from './failure.js'
import { onInterrupt } from './interrupts.js'

/**
 * Resolves with the number of bytes once the file has the complete content. Until then an existing file is unchanged. The
 * content is requested once the file is open. Devices and folders are refused. An incomplete file is removed, also if a
 * signal ends the command.
 */
export async function writeFileAtomically(
  path: string,
  request: (signal: AbortSignal) => Promise<Iterable<Uint8Array | string> | AsyncIterable<Uint8Array>>,
): Promise<number> {
  const existing = await stat(path).catch(() => null)
  if (existing?.isFile() === false) throw new Failure(EXIT.usage, `${path} is not a file`)
  const partial = `${path}.${process.pid}.partial`
  using interrupts = onInterrupt()
  const { signal } = interrupts
  try {
    const file = (await open(partial, 'wx')).createWriteStream({ flush: true })
    try {
      await pipeline(await request(signal), file, { signal })
    } finally {
      file.destroy()
    }
    await rename(partial, path)
    return file.bytesWritten
  } catch (error) {
    await rm(partial, { force: true })
    if (signal.aborted) throw new Failure(EXIT.failed, 'interrupted')
    throw error instanceof Failure ? error : cannotWrite(path, error)
  }
}
