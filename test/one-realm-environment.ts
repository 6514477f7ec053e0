import { TestEnvironment } from 'jest-environment-node'

/**
 * Jest runs every test file in its own realm, but lmdb's native part uses the Date of the first realm of the process. A
 * Date of another realm would be stored as text. So all realms share one Date.
 */
export default class OneRealmEnvironment extends TestEnvironment {
  override async setup(): Promise<void> {
    await super.setup()
    this.global.Date = Date
  }
}
