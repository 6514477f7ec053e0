import type { RedisClient } from './redis-client.js'

export type ScriptArgument = string | number | Buffer

/** A Lua script. Its text is sent with every call: Redis compiles it only once, and it is short. */
export class Script {
  constructor(private readonly lua: string) {}

  /** Runs the script. All keys must be in one hash slot. */
  run(client: RedisClient, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    return client.call('EVAL', [this.lua, keys.length, ...keys, ...args])
  }

  /** Runs the script, and returns strings as bytes. */
  runForBytes(
    client: RedisClient,
    keys: readonly string[],
    args: readonly ScriptArgument[],
  ): Promise<unknown> {
    return client.callBuffer('EVAL', [this.lua, keys.length, ...keys, ...args])
  }
}
