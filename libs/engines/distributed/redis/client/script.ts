import { createHash } from 'node:crypto'
import type { RedisClient } from './redis-client.js'

export type ScriptArgument = string | number | Buffer

/** A Lua script, sent in full only if Redis doesn't have it yet. */
export class Script {
  private readonly sha: string

  constructor(private readonly lua: string) {
    this.sha = createHash('sha1').update(lua).digest('hex')
  }

  /** Its keys lie in one hash slot. */
  async run(client: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return this.send((command, all) => client.call(command, all), keys, args)
  }

  /** The same, with bytes for each text that it answers. */
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
