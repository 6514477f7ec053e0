import { importsAny, selectedSuites, type Selection } from './selected-suites.js'
import { bringPython } from '#test/schemathesis/bring.js'
import { bringKafka, startSharedServers } from './shared-servers.js'

/** Jest's global setup: suites that use no server wait for none. */
export default async function globalSetup(selection: Selection): Promise<void> {
  const suites = await selectedSuites(selection)
  if (importsAny(suites, ['test/harness/kafka.js'])) await bringKafka()
  if (importsAny(suites, ['test/harness/python.js'])) await bringPython()
  if (importsAny(suites, ['test/harness/servers.js'])) await startSharedServers()
}
