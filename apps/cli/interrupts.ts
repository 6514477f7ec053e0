import { EXIT } from './failure.js'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * A signal that is aborted at the first Ctrl-C, SIGTERM or SIGHUP. The second one ends the process at once. Disposing stops
 * listening.
 */
export function onInterrupt(): Disposable & { signal: AbortSignal } {
  const aborter = new AbortController()
  const interrupt = () => {
    if (aborter.signal.aborted) process.exit(EXIT.interrupted)
    process.stderr.write('\nstopping; press Ctrl-C again to end at once\n')
    aborter.abort()
  }
  for (const name of SIGNALS) process.on(name, interrupt)
  return {
    signal: aborter.signal,
    [Symbol.dispose]() {
      for (const name of SIGNALS) process.off(name, interrupt)
    },
  }
}
