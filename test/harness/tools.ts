import { spawnSync } from 'node:child_process'

/** Programs that some suites use and that a machine may lack. */
const TOOLS = {
  swaks: { arguments: ['--version'], get: 'apt-get install swaks' },
  'smtp-source': { arguments: ['-h'], get: 'apt-get install postfix' },
  curl: { arguments: ['--version'], get: 'apt-get install curl' },
  strace: { arguments: ['-V'], get: 'apt-get install strace' },
  'redis-server': { arguments: ['--version'], get: 'apt-get install redis-server' },
  python3: { arguments: ['--version'], get: 'apt-get install python3' },
} as const

export type Tool = keyof typeof TOOLS

/** Whether nothing may be skipped: set for continuous integration. */
export const MUST_RUN_ALL = process.env.MAYFLY_TEST_ALL === '1'

export function missingTools(): { tool: Tool; get: string }[] {
  return Object.entries(TOOLS).flatMap(([tool, { arguments: probe, get }]) =>
    isThere(tool, probe) ? [] : [{ tool: tool as Tool, get }],
  )
}

/** `describe` where the tool is there or must be, else `describe.skip`. */
export function describeWith(tool: Tool): jest.Describe {
  return MUST_RUN_ALL || isThere(tool, TOOLS[tool].arguments) ? describe : describe.skip
}

function isThere(program: string, probe: readonly string[]): boolean {
  return spawnSync(program, probe, { stdio: 'ignore', timeout: 10_000 }).error === undefined
}
