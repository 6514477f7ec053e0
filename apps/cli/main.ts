import { CommanderError } from 'commander'
import { EXIT, failureFrom, type ExitCode } from './failure.js'
import { harmless } from './printing.js'
import { makeProgram } from './program.js'

/*
 * `mayfly`: a client of the HTTP API for people and scripts (docs/cli.md). It prints results on standard
 * output and errors on standard error, and exits with a code for the kind of failure.
 */

// The reader may have closed the pipe: `mayfly … | head`.
process.stdout.on('error', () => process.exit(EXIT.failed))

const program = makeProgram(process.stdout)
try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = report(error)
}

/** Prints the error, and returns the exit code. */
function report(error: unknown): ExitCode {
  // Commander has already printed the help or the error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  const { exitCode, message, problem } = failureFrom(error)
  const isJson = program.opts<{ json?: boolean }>().json === true && problem !== null
  process.stderr.write(isJson ? `${JSON.stringify(problem)}\n` : `mayfly: ${harmless(message)}\n`)
  return exitCode
}
