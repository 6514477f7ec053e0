import { createHash } from 'node:crypto'
import type { RedisClient } from './redis-client.js'

export type ScriptArgument = string | number | Buffer

/** A Lua script. Its text is sent only if Redis does not have it yet. */
export class Script {
  private readonly sha: string

  constructor(private readonly lua: string) {
    this.sha = createHash('sha1').update(lua).digest('hex')
  }

  /** Runs the script. All keys must be in one hash slot. */
  async run(client: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return this.send((command, all) => client.call(command, all), keys, args)
  }

  /** Runs the script, and returns strings as bytes. */
  async runForBytes(
    client: RedisClient,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<unknown> {
    return this.send((command, all) => client.callBuffer(command, all), keys, args)
  }

  private async send(
    call: (command: string, args: ScriptArgument[]) => Promise<unknown>,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args]
    try {
      return await call('EVALSHA', [this.sha, ...rest])
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return call('EVAL', [this.lua, ...rest])
    }
  }
}
