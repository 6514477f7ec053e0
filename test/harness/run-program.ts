import { execFile, type ExecFileOptions } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Target } from './client.js'

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

/** Runs `mayfly --json`. Without a target, it has no access to any server. */
export function runCli(target: Target | null, ...args: readonly string[]): Promise<EndedProgram> {
  const access = target === null ? {} : { MAYFLY_URL: target.url, MAYFLY_KEY: target.apiKey }
  const main = join(process.cwd(), 'dist/apps/cli/main.js')
  const env = { PATH: process.env.PATH ?? '', ...access }
  return runProgram(process.execPath, [main, '--json', ...args], { env, timeout: 110_000 })
}
