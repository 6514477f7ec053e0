/** Of a process that is broken: a faulty address or instruction, memory that is no longer sound. */
const FATAL = ['SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV', 'SIGSYS', 'SIGTRAP'] as const

/**
 * Lets such a process end at once, and whoever watches over it start another one. chDB, once it is connected to, handles
 * these signals to print where it was, and waits for five minutes for a thread that a server would have for it.
 */
export function endAtFatalSignals(): void {
  for (const signal of FATAL) {
    const handle = () => undefined
    process.on(signal, handle)
    // With its last listener goes every handler: the system's default is in force.
    process.off(signal, handle)
  }
}
