import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const WITHIN_MS = 100_000

/** A new project in a temporary folder, with packages of clients/ installed as they would be published. */
export class NewProject implements AsyncDisposable {
  private constructor(readonly folder: string) {}

  /** Packs the packages in these folders, and installs them with packages from the registry. */
  static async create(folders: readonly string[], others: readonly string[] = []): Promise<NewProject> {
    const project = new NewProject(await mkdtemp(join(tmpdir(), 'mayfly-project-')))
    await project.write('package.json', JSON.stringify({ type: 'module', private: true }))
    for (const folder of folders) {
      await run('npm', ['pack', '--silent', '--pack-destination', project.folder], { cwd: folder })
    }
    const packages = folders.length === 0 ? [] : ['./*.tgz']
    const options = '--no-audit --no-fund --prefer-offline --no-package-lock'
    await project.shell(`npm install ${options} ${[...packages, ...others].join(' ')}`)
    return project
  }

  async write(file: string, content: string): Promise<void> {
    await writeFile(join(this.folder, file), content)
  }

  /** Runs a command in the folder. Resolves with its output; rejects with it if the command fails. */
  async shell(command: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const bins = [
      join(this.folder, 'node_modules/.bin'),
      join(process.cwd(), 'node_modules/.bin'),
      process.env.PATH,
    ]
    try {
      const { stdout, stderr } = await run('sh', ['-c', command], {
        cwd: this.folder,
        env: { ...process.env, PATH: bins.join(delimiter), ...env },
        timeout: WITHIN_MS,
      })
      return stdout + stderr
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string }
      throw new Error(`${command} failed:\n${stdout}${stderr}`, { cause: error })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}
