import { installPythonPackages } from './python.js'
import { importsAny, selectedSuites, type Selection } from './selected-suites.js'
import { kafkaBrokers, redisClusterUrls, redisUrl } from './servers.js'
import { startSharedMayfly, type SharedName } from './shared-mayfly.js'
import { installKafka, deferToEnd, startSharedServers } from './shared-servers.js'

/** Jest's global setup of the project `embedded`. */
export default function globalSetup(selection: Selection): Promise<void> {
  return setUp(selection, 'embedded')
}

/**
 * Starts the Mayfly that the suites of a project share and, once for all projects, the servers. Starts only what the
 * selected suites import.
 */
export async function setUp(selection: Selection, name: SharedName): Promise<void> {
  const suites = await selectedSuites(selection)
  const installing: Promise<unknown>[] = []
  if (importsAny(suites, ['test/harness/kafka.js'])) installing.push(installKafka())
  if (importsAny(suites, ['test/harness/python.js'])) installing.push(installPythonPackages())
  await Promise.all(installing)
  if (importsAny(suites, ['test/harness/servers.js'])) await startSharedServers()
  if (importsAny(suites, ['test/harness/shared-mayfly.js']) && canShare(name))
    deferToEnd(await startSharedMayfly(name))
}

/** If the servers of a project are missing, only its own suites fail. */
function canShare(name: SharedName): boolean {
  if (name === 'embedded') return true
  const redis = name === 'redis-cluster' ? redisClusterUrls() : [redisUrl()]
  return kafkaBrokers().length > 0 && redis.some((url) => url !== '')
}
