import { installPythonPackages } from './python.js'
import { importsAny, selectedSuites, type Selection } from './selected-suites.js'
import { kafkaBrokers, redisUrl } from './servers.js'
import type { EngineName } from './mayfly.js'
import { startSharedMayfly } from './shared-mayfly.js'
import { installKafka, deferToEnd, startSharedServers } from './shared-servers.js'

/** Jest's global setup of the project `embedded`. */
export default function globalSetup(selection: Selection): Promise<void> {
  return setUp(selection, 'embedded')
}

/**
 * Starts the Mayfly that the suites of a project share, unless `engine` is null, and, once for all projects, the servers.
 * Starts only what the selected suites import.
 */
export async function setUp(selection: Selection, engine: EngineName | null): Promise<void> {
  const suites = await selectedSuites(selection)
  const installing: Promise<unknown>[] = []
  if (importsAny(suites, ['test/harness/kafka.js'])) installing.push(installKafka())
  if (importsAny(suites, ['test/harness/python.js'])) installing.push(installPythonPackages())
  await Promise.all(installing)
  if (importsAny(suites, ['test/harness/servers.js'])) await startSharedServers()
  if (engine === null || !importsAny(suites, ['test/harness/shared-mayfly.js'])) return
  if (hasServers(engine)) deferToEnd(await startSharedMayfly(engine))
}

/** If the servers of a project are missing, only its own suites fail. */
function hasServers(engine: EngineName): boolean {
  return engine === 'embedded' || (kafkaBrokers().length > 0 && redisUrl() !== '')
}
