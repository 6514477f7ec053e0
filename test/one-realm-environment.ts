import { constants, createContext, runInContext } from 'node:vm'
import { TestEnvironment } from 'jest-environment-node'

/**
 * Jest runs every test file in its own realm, but lmdb's native part uses the Date of the first realm of the process. A
 * Date of another realm would be stored as text. So all realms share one Date.
 *
 * Jest's own realms look up each global through an interceptor and a proxy, which takes a fifth of the CPU time of the
 * suites. These realms have plain globals.
 */
export default class OneRealmEnvironment extends TestEnvironment {
  constructor(...args: ConstructorParameters<typeof TestEnvironment>) {
    super(...args)
    const jestGlobal = this.global
    this.context = createContext(constants.DONT_CONTEXTIFY)
    this.global = runInContext('globalThis', this.context) as typeof jestGlobal
    for (const name of Reflect.ownKeys(jestGlobal)) {
      const descriptor = Object.getOwnPropertyDescriptor(jestGlobal, name)
      if (descriptor !== undefined && !Object.hasOwn(this.global, name))
        Object.defineProperty(this.global, name, descriptor)
    }
    const { ArrayBuffer, Uint8Array } = jestGlobal
    Object.assign(this.global, { global: this.global, ArrayBuffer, Uint8Array, Date })
    this.global.Error.stackTraceLimit = jestGlobal.Error.stackTraceLimit
  }
}
