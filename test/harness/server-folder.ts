import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Life } from '#infra/servers/server-process.js'

interface Killable {
  kill(signal: NodeJS.Signals): Promise<unknown>
}

/** A server, or all nodes of a cluster. */
type Started = Killable | { nodes: readonly Killable[] }

/**
 * Starts a server in an empty folder. It ends with the suite's process at the latest. `dispose` stops it and removes its
 * data.
 */
export async function inFolder<Server extends Started>(
  name: string,
  start: (folder: string, life: Exclude<Life, 'detached'>) => Promise<Server>,
): Promise<Server & { dispose(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), `mayfly-${name}-`))
  const remove = () => rm(folder, { recursive: true, force: true })
  try {
    const server = await start(folder, { endsWithOwner: true, removing: folder })
    const started: Started = server
    const dispose = async () => {
      const processes = 'nodes' in started ? started.nodes : [started]
      await Promise.all(processes.map((each) => each.kill('SIGKILL')))
      await remove()
    }
    return Object.assign(server, { dispose })
  } catch (error) {
    await remove()
    throw error
  }
}
