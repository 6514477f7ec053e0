import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/**
 * Ends the process as `process.exit` does, and surely: V8's threads, which Node joins on its way out, may wait for a
 * garbage collection that nobody is left to make (nodejs/node#54918). One made here lets them go on, and leaves them
 * the room that they need until they are joined.
 */
export function endProcess(exitCode: number): never {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  process.exit(exitCode)
}
