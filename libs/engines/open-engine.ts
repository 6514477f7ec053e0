import type { Engine, EngineOptions } from '#libs/engines/engine.js'
import type { EventLog } from '#libs/ports/event-log/event-log.js'
import type { ReadModel } from '#libs/ports/read-model/queries.js'

/** Opens the engine that the settings select. Loads only its libraries. Rejects with StartError if it can't be opened. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  if (options.settings.kafkaBrokers === null) {
    const { openEmbeddedEngine } = await import('#libs/engines/embedded/embedded-engine.js')
    return openEmbeddedEngine(options)
  }
  const { openDistributedEngine } = await import('#libs/engines/distributed/distributed-engine.js')
  return openDistributedEngine(options)
}

/**
 * Opens what is needed to compare the views with the event log: of a running system on Kafka and Redis, or of a data folder
 * that no process uses. Rejects as `openEngine` and `openForComparison` do.
 */
export async function openLogAndViews(
  options: EngineOptions,
): Promise<{ log: EventLog; model: Omit<ReadModel, 'store'> } & AsyncDisposable> {
  if (options.settings.kafkaBrokers === null) {
    const { openForComparison } = await import('#libs/engines/embedded/embedded-engine.js')
    return openForComparison(options.settings.dataDir, options.now)
  }
  const { log, inboxes: queries, ...views } = await openEngine(options)
  return { log, model: { ...views, queries }, [Symbol.asyncDispose]: () => views.close() }
}
