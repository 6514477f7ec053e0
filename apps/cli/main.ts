import { CommanderError } from 'commander'
import { EXIT, Failure, type ExitCode } from './failure.js'
import { harmless } from './printing.js'
import { makeProgram } from './program.js'

/*
 * `mayfly`: a client of the HTTP API for people and scripts (docs/cli.md). It asks over HTTP, prints what came of it on
 * standard output, what went wrong on standard error, and ends with a code that tells which of the two it was.
 */

// Who reads may have had enough: `mayfly … | head`.
process.stdout.on('error', () => process.exit(EXIT.failed))

const program = makeProgram(process.stdout)
try {
  await program.parseAsync()
} catch (error) {
  process.exitCode = tell(error)
}

function tell(error: unknown): ExitCode {
  // It has told by itself: help that was asked for, or what is wrong with the command line.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  const { exitCode, message, problem } =
    error instanceof Failure
      ? error
      : {
          exitCode: EXIT.failed,
          message: error instanceof Error ? error.message : String(error),
          problem: null,
        }
  const isJson = program.opts<{ json?: boolean }>().json === true && problem !== null
  process.stderr.write(isJson ? `${JSON.stringify(problem)}\n` : `mayfly: ${harmless(message)}\n`)
  return exitCode
}
