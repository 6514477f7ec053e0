import { EXIT, Failure } from '../failure.js'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Calls `stop` at the first Ctrl-C, or SIGTERM. The second one ends the process at once. Disposing stops listening. */
export function onInterrupt(stop: () => void): Disposable {
  let isStopping = false
  const interrupt = () => {
    if (isStopping) process.exit(EXIT.interrupted)
    isStopping = true
    process.stderr.write('\nstopping; press Ctrl-C again to end at once\n')
    stop()
  }
  for (const name of SIGNALS) process.on(name, interrupt)
  return {
    [Symbol.dispose]() {
      for (const name of SIGNALS) process.off(name, interrupt)
    },
  }
}

export function interrupted(): Failure {
  return new Failure(EXIT.interrupted, 'interrupted')
}
