import { setUp } from './global-setup.js'
import type { Selection } from './selected-suites.js'

/** Jest's global setup of the project `redis-cluster`. */
export default function globalSetup(selection: Selection): Promise<void> {
  return setUp(selection, 'redis-cluster')
}
