import { constants } from 'node:os'
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

/**
 * Ends the process at once, whatever is under way, as the signal does where nobody listens for it. `process.exit` can't:
 * it waits for LMDB's writer, which may wait for this very thread, and takes its memory from ClickHouse's engine while
 * that goes on.
 */
export function endBy(signal: NodeJS.Signals): never {
  process.removeAllListeners(signal)
  process.kill(process.pid, signal)
  // The first process of a container is spared its own signals.
  process.exit(FROM_SIGNALS + constants.signals[signal])
}

/** As shells tell of processes that a signal ended. */
const FROM_SIGNALS = 128
