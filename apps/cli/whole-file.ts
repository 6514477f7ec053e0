import { open, rename, rm } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { messageOf } from '#libs/runtime/fault/message-of.js'
import { EXIT, Failure } from './failure.js'

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Asks for content, once there is somewhere to put it. The signal aborts where it is no longer wanted. */
type AskForContent = (signal: AbortSignal) => Promise<AsyncIterable<Uint8Array>>

/**
 * Resolves with how many bytes they were once a file has all of the content. What was there before is there until then;
 * nothing is left of a file that is not whole, also where a signal ends the command.
 */
export async function writeFileWhole(path: string, ask: AskForContent): Promise<number> {
  const partial = `${path}.${process.pid}.partial`
  const interrupted = new AbortController()
  const interrupt = () => interrupted.abort()
  const { signal } = interrupted
  for (const name of ENDING) process.once(name, interrupt)
  try {
    const file = (await open(partial, 'wx')).createWriteStream()
    try {
      await pipeline(await ask(signal), file, { signal })
    } finally {
      file.destroy()
    }
    await rename(partial, path)
    return file.bytesWritten
  } catch (error) {
    await rm(partial, { force: true })
    if (signal.aborted) throw new Failure(EXIT.failed, 'interrupted')
    if (error instanceof Failure) throw error
    throw new Failure(EXIT.failed, `${path} can't be written: ${messageOf(error)}`)
  } finally {
    for (const name of ENDING) process.off(name, interrupt)
  }
}
