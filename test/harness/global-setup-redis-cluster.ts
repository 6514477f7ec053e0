import { setUp } from './global-setup.js'
import type { Selection } from './selected-suites.js'

/** Jest's global setup of the project `redis-cluster`, whose suites start their own Mayfly: see redis-cluster.ts. */
export default function globalSetup(selection: Selection): Promise<void> {
  return setUp(selection, null)
}
