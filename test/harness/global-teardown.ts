import { endSharedServers } from './shared-servers.js'

/** Jest's global teardown. */
export default async function globalTeardown(): Promise<void> {
  await endSharedServers()
}
