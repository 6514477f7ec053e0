import type { ScriptArgument } from '#libs/engines/distributed/redis/client/script.js'

/** Values to one command: Lua hands no more than some thousands to a call. */
const MAX_VALUES = 1_000

/** `ZADD LT` sets a member's score only where it has none or a higher one, `ZADD NX` only where it has none. */
type Command = 'HSET' | 'HDEL' | 'ZADD' | 'ZADD LT' | 'ZADD NX' | 'ZREM' | 'UNLINK'

/** A full Redis refuses a script whose first write could take memory: an inbox's end, which gives some back, goes on. */
const REMOVALS: ReadonlySet<Command> = new Set(['HDEL', 'ZREM', 'UNLINK'])

/**
 * Writes to keys of one hash slot, gathered by command and key, as the scripts take them: removals first, whose order
 * is free as that of the others is.
 */
export class StepWrites {
  private readonly byTarget = new Map<string, { command: Command; key: string; values: ScriptArgument[] }>()

  add(command: Command, key: string, ...values: ScriptArgument[]): void {
    const target = `${command} ${key}`
    const gathered = this.byTarget.get(target)
    if (gathered === undefined) this.byTarget.set(target, { command, key, values })
    else gathered.values.push(...values)
  }

  /** The keys besides those that the script has anyway, and the arguments that name keys by their place. */
  forScript(ownKeys: readonly string[]): { keys: string[]; args: ScriptArgument[] } {
    const places = new Map(ownKeys.map((key, index) => [key, index + 1]))
    const args: ScriptArgument[] = []
    const writes = [...this.byTarget.values()]
    const isRemoval = ({ command }: (typeof writes)[number]) => REMOVALS.has(command)
    const inOrder = [...writes.filter(isRemoval), ...writes.filter((each) => !isRemoval(each))]
    for (const { command, key, values } of inOrder) {
      const place = places.get(key) ?? places.size + 1
      places.set(key, place)
      for (let at = 0; at === 0 || at < values.length; at += MAX_VALUES) {
        const some = values.slice(at, at + MAX_VALUES)
        const [name, ...options] = command.split(' ')
        args.push(some.length + options.length + 2, name ?? command, place, ...options)
        for (const value of some) args.push(value)
      }
    }
    return { keys: [...places.keys()], args }
  }
}
