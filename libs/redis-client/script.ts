import { createHash } from 'node:crypto'
import type { RedisClient } from './redis-client.js'

export type ScriptArgument = string | number | Buffer

/** A Lua script, sent in full only where Redis doesn't have it yet. */
export class Script {
  private readonly sha: string

  constructor(private readonly lua: string) {
    this.sha = createHash('sha1').update(lua).digest('hex')
  }

  /** Its keys lie in one hash slot. */
  async run(client: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    const rest = [keys.length, ...keys, ...args]
    try {
      return await client.call('EVALSHA', [this.sha, ...rest])
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return client.call('EVAL', [this.lua, ...rest])
    }
  }
}
