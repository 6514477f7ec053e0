import type { Engine, EngineOptions } from '#libs/engines/engine.js'

/** Opens the engine that the settings select. Loads only its libraries. Rejects with StartError if it can't be opened. */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  if (options.settings.kafkaBrokers === null) {
    const { openEmbeddedEngine } = await import('#libs/engines/embedded/embedded-engine.js')
    return openEmbeddedEngine(options)
  }
  const { openDistributedEngine } = await import('#libs/engines/distributed/distributed-engine.js')
  return openDistributedEngine(options)
}
