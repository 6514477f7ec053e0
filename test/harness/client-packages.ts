import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import { runProgram } from './run-program.js'

const run = promisify(execFile)
const WITHIN_MS = 100_000
/** The timeout of a hook that calls `installClients`, which downloads packages. */
export const INSTALL_WITHIN_MS = 300_000
const MAX_OUTPUT_BYTES = 2 ** 26

export interface Project {
  folder: string
  /** Runs a program. Resolves with its exit code and output. */
  run(
    program: string,
    args: readonly string[],
    env?: Readonly<Record<string, string>>,
    withinMs?: number,
  ): Promise<{ code: number; output: string }>
  dispose(): Promise<void>
}

/**
 * A new project in which packages of clients/ are installed the way their users install them: packed with `npm pack`,
 * beside other packages from the registry.
 */
export async function installClients(
  clients: readonly ('typescript' | 'playwright' | 'cypress')[],
  packages: readonly string[],
): Promise<Project> {
  const root = await mkdtemp(join(tmpdir(), 'mayfly-project-'))
  const folder = join(root, 'project')
  const archives = join(root, 'archives')
  await mkdir(folder)
  await mkdir(archives)
  await symlink(join(process.cwd(), 'node_modules'), join(root, 'node_modules'))
  // Packing compiles, so it works on copies: several suites may pack the same client.
  for (const client of clients)
    await cp(join('clients', client), join(root, client), { recursive: true, filter })
  const project: Project = {
    folder,
    async run(program, args, env = {}, withinMs = WITHIN_MS) {
      const options = {
        cwd: folder,
        env: { ...process.env, JEST_WORKER_ID: undefined, NODE_ENV: undefined, ...env },
        timeout: withinMs,
        maxBuffer: MAX_OUTPUT_BYTES,
      }
      const { code, stdout, stderr } = await runProgram(program, args, options)
      return { code, output: stdout + stderr }
    },
    dispose: () => rm(root, { recursive: true, force: true }),
  }
  for (const client of clients)
    await run('npm', ['pack', '--silent', '--pack-destination', archives], { cwd: join(root, client) })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  const packed = (await readdir(archives)).map((file) => join(archives, file))
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  const install = ['install', ...packed, ...packages, ...flags]
  const { code, output } = await project.run('npm', install, {}, INSTALL_WITHIN_MS)
  if (code !== 0) throw new Error(`npm install failed:\n${output}`)
  return project
}

function filter(path: string): boolean {
  return !['dist', 'node_modules', 'example'].includes(basename(path))
}

/** The code blocks of a section of a Markdown file, in their order. */
export async function codeBlocks(file: string, heading: string): Promise<string[]> {
  const sections = (await readFile(file, 'utf8')).split(/^## /m)
  const section = sections.find((each) => each.startsWith(`${heading}\n`)) ?? ''
  return [...section.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, code = '']) => code)
}
