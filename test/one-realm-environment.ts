import { TestEnvironment } from 'jest-environment-node'

/**
 * Every test file runs in a realm of its own, but what lmdb's native part holds comes from the first of a
 * process: another realm's Date is no Date to it, and is stored as text. So all realms share one.
 */
export default class OneRealmEnvironment extends TestEnvironment {
  override async setup(): Promise<void> {
    await super.setup()
    this.global.Date = Date
  }
}
