import { execFile, type ExecFileOptions } from 'node:child_process'
import { promisify } from 'node:util'

export interface EndedProgram {
  /** -1 if it did not exit by itself. */
  code: number
  stdout: string
  stderr: string
}

const run = promisify(execFile)

/** Runs a program. Resolves once it has ended, however it ended. */
export async function runProgram(
  program: string,
  args: readonly string[],
  options: Omit<ExecFileOptions, 'encoding'>,
): Promise<EndedProgram> {
  try {
    return { code: 0, ...(await run(program, args, options)) }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string }
    return { code: typeof code === 'number' ? code : -1, stdout, stderr }
  }
}
